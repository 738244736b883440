"""Where weights come from, and where they are kept."""
