-- HTTomo's pipeline of this name: correction, axis, logarithm, filtered back-projection.
return {
    {"flat_field", preset = "httomo"},
    {"center", preset = "httomo"},
    "minus_log",
    {"fbp", filter = "ram-lak"},
}
