"""Figures of merit: how often pictures obey, and how near they are to what the generator draws by itself."""
