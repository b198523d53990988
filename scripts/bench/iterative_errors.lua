-- Errors of iterative reconstruction against a phantom, with noise, beside filtered
-- back-projection, ASTRA (on the CPU) and scikit-image after the same number of iterations: the
-- table of docs/tutorials/iterative.md.
-- usage: moonbeam scripts/bench/iterative_errors.lua [PYTHON SIZE ITERATIONS]

local mb = require "moonbeam"

local python, size, iterations = mb.usage("build/oracles/bin/python", 129, 20)
local NOISE <const> = 0.01 -- of the largest line integral

local PEERS = [[
import sys, numpy as np, astra
from skimage.transform import iradon_sart
folder, iterations = sys.argv[1], int(sys.argv[2])
s, t = np.load(folder + '/s.npy')[0], np.load(folder + '/t.npy')[0]
n, angles = len(t), np.arange(len(s)) * np.pi / len(s)
y, x = np.mgrid[:n, :n] - (n - 1) / 2
inside = x ** 2 + y ** 2 <= (n / 2) ** 2
def error(x):
    return np.linalg.norm((x - t)[inside]) / np.linalg.norm(t[inside])
w = astra.OpTomo(astra.create_projector('linear', astra.create_proj_geom('parallel', 1.0, n, angles),
    astra.create_vol_geom(n, n)))
x = None
for _ in range(4):
    x = iradon_sart(s.T.astype(float), theta=np.degrees(angles), image=x)
print('%.3f %.3f %.3f' % (error(w.reconstruct('SIRT', s.ravel(), iterations)),
    error(w.reconstruct('CGLS', s.ravel(), iterations)), error(x)))
]]

local OURS = {
    {"fbp", {circle = 1}}, {"sirt", {iterations = iterations}},
    {"cgls", {iterations = iterations}},
    {"sart", {iterations = 4}}, {"sart", {iterations = 4, taper = 0}},
    {"fista", {iterations = 200, lambda = 0.1}},
}

local folder = os.tmpname()
os.remove(folder)
assert(os.execute(("mkdir '%s'"):format(folder)))
local _ <close> = setmetatable({}, {__close = function()
    os.execute(("rm -r '%s'"):format(folder))
end})
do
    local script <close> = assert(io.open(folder .. "/peers.py", "w"))
    script:write(PEERS)
end

-- The errors of the peers, as cells of a table.
local function peers(sinogram, truth)
    mb.npy.write(folder .. "/s.npy", sinogram, {overwrite = true})
    mb.npy.write(folder .. "/t.npy", truth, {overwrite = true})
    local pipe = assert(io.popen(("'%s' '%s/peers.py' '%s' %d"):format(python, folder, folder,
        iterations)))
    local text = pipe:read("a")
    pipe:close()
    return text:match("(%S+) (%S+) (%S+)")
end

print("| angles | fbp | sirt | ASTRA SIRT | cgls | ASTRA CGLS | sart | sart, taper = 0 | "
    .. "scikit-image SART | fista |")
print("|---|---|---|---|---|---|---|---|---|---|")
for _, count in ipairs {40, 100, 250, 1000} do
    local angles = mb.tomo.angles(count)
    local head = mb.phantom.scale(mb.phantom.shepp_logan, 0.45 * size, nil, 2 / size)
    local projections <close> = mb.ellipsoid_projections(head, angles, {0}, size)
    local view <close> = projections:permute(2, 1, 3)
    local sinogram <close> = view:copy()
    local most = sinogram:max()
    for seed = 1, 2 do
        local noise <close> = mb.random(sinogram.shape, {seed = seed, low = -1, high = 1})
        mb.binary(noise, "mul", {scalar = NOISE * most * math.sqrt(3 / 2), out = noise})
        mb.binary(sinogram, "add", {b = noise, out = sinogram})
    end
    local whole <close> = mb.ellipsoid_volume(head, {0}, {size, size})
    local truth <close> = mb.circular_mask(whole)
    local errors = {}
    for i, method in ipairs(OURS) do
        local slices <close> = mb.tomo[method[1]](sinogram, angles, method[2])
        local difference <close> = slices - truth
        errors[i] = ("%.3f"):format(difference:norm() / truth:norm())
    end
    local sirt, cgls, sart = peers(sinogram, truth)
    print(("| %d | %s | %s | %s | %s | %s | %s | %s | %s | %s |"):format(count, errors[1],
        errors[2], sirt or "-", errors[3], cgls or "-", errors[4], errors[5], sart or "-",
        errors[6]))
end
