-- HTTomo's pipeline of this name: run it with
-- --sweep paganin.delta_beta=10,150,350 --set paganin.energy=53000 --set paganin.distance=1
return {
    {"flat_field", preset = "httomo"},
    {"center", preset = "httomo"},
    {"paganin", preset = "httomo"},
    {"fbp", preset = "httomo"},
}
