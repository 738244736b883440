"""Methods that this one is compared with, made from their papers for any generator with labelled latents."""
