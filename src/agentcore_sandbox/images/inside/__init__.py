"""Programs that are copied into images. Nothing here imports them."""
