--- Steps of a pipeline that are not reconstruction, per sinogram, frame or slice: a file for each
-- family of operators in scripts/bench/steps/. Floors count every array once. Peers of the host are
-- SciPy, scikit-image, PyWavelets and algotom, with as many threads as they use (one, mostly).
--
-- A file of a family returns a function(bench, report). report(name, unit, count, bytes, fn) times
-- fn, which works on `count` units ("sinogram", "frame", "slice") and at least moves `bytes` in
-- all. Peers are in <family>_peers.py beside it: host(size, angles, slices)
-- and cuda(...) return {name of the row: (name of the peer, units per run, function)}.

local core = require "moonbeam.core"

local FOLDER = (arg[0]:match("^(.*)/[^/]*$") or ".") .. "/bench/steps"

local function families()
    local list = {}
    for _, entry in ipairs(core.system.folder(FOLDER)) do
        list[#list + 1] = entry:match "^(.+)%.lua$"
    end
    table.sort(list)
    return list
end

return function(bench)
    local options = bench.options
    local row = bench.table(("## Steps: %d slices of %d x %d from %d angles"):format(
        options.slices, options.size, options.size, options.angles),
        {"work", "ms each", "floor ms", "x floor", "peer", "peer ms", "x peer"})
    local peers = {}
    for _, peer in ipairs(bench.peers("steps", options.size, options.angles, options.slices,
        options.repeats, options.only or "")) do
        local work, name = peer.name:match "^(.-) by (.*)$"
        peers[work] = {name = name, seconds = peer.seconds}
    end
    local function report(name, unit, count, bytes, fn)
        if not bench.wanted(name) then
            return
        end
        local seconds, floor = bench.time(fn) / count, bench.floor(bytes) / count
        local peer = peers[name] or {}
        row(("%s, a %s"):format(name, unit), ("%.4f"):format(seconds * 1e3), ("%.4f"):format(
            floor * 1e3), ("%.1f"):format(seconds / floor), peer.name, peer.seconds
            and ("%.3f"):format(peer.seconds * 1e3), peer.seconds
            and ("%.1f"):format(peer.seconds / seconds))
    end
    for _, family in ipairs(families()) do
        assert(loadfile(("%s/%s.lua"):format(FOLDER, family)))()(bench, report)
    end
end
