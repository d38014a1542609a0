"""The way out of a box, and the way into it: allowed hosts through a proxy outside, and ports inside on this machine."""
