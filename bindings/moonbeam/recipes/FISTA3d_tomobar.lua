-- HTTomo's pipeline of this name: iterative reconstruction with total variation.
return {
    {"flat_field", preset = "httomo"},
    {"center", preset = "httomo"},
    "minus_log",
    {"fista", iterations = 20},
    {"rescale", preset = "httomo"},
}
