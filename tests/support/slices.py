"""The slices of the package: folders that nothing else in it depends on."""

SLICES = {  # name: its folders in the package
    "cores": ("cores", "mechanisms/allocation"),
    "finite": ("finite", "mechanisms/finite"),
    "live": ("live",),
    "papers": ("papers",),
    "dashboard": ("dashboard",),
}
