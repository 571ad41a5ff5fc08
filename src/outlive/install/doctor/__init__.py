"""The checks of `outlive doctor`."""
