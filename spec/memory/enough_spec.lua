-- The budget that an error names is enough for the whole call at the first try, and for nine tenths
-- of it there is no plan: whatever plans by itself, by the budget of its device and by its option.
-- Random calls by a seed; MOONBEAM_RANDOM_BUDGETS=300 makes so many of each client,
-- MOONBEAM_RANDOM_SEED=N others.

local helper = require "spec.helper"
local mb = require "moonbeam"
local random_numbers = require "moonbeam.internal.quantities.random_numbers"
local tables = require "moonbeam.internal.tables"

local COUNT <const> = tonumber(os.getenv "MOONBEAM_RANDOM_BUDGETS") or 1
local SEED <const> = tonumber(os.getenv "MOONBEAM_RANDOM_SEED") or 6

local host = mb.device "host"
local number = random_numbers(SEED)

local function up_to(n)
    return 1 + math.floor(number() * n)
end

local function one_of(list)
    return list[up_to(#list)]
end

-- Some of these options.
local function some(options)
    local own = {}
    for _, name in ipairs(tables.keys(options)) do
        own[name] = number() < 0.5 and options[name] or nil
    end
    return own
end

-- An image of two or three axes, and a PSF.
local function images()
    local flat = number() < 0.3
    local shape = flat and {10 + up_to(12), 10 + up_to(12)} or {2 + up_to(3), 8 + up_to(8),
        8 + up_to(8)}
    local kernel = flat and {up_to(6), up_to(6)} or {up_to(3), up_to(5), up_to(5)}
    return mb.random(shape, {seed = up_to(1000), low = 10, high = 90}),
        mb.random(kernel, {seed = up_to(1000), low = 0.1, high = 1})
end

-- Frames, flats and darks, and the column of the axis; and the scan that they are.
local function frames()
    local angles, rows, cols = 12 + up_to(12), up_to(6), 12 + up_to(24)
    local raw = mb.random({angles, rows, cols}, {dtype = "u16", low = 100, high = 200,
        seed = up_to(1000)})
    local flats = mb.full({2, rows, cols}, 300, {dtype = "u16"})
    local darks = mb.zeros({2, rows, cols}, {dtype = "u16"})
    return {raw, flats, darks}, mb.tomo.angles(angles), cols / 2 - 0.5
end

local function scan_of(list, angles)
    return mb.scan.of_arrays(list[1], angles, {flats = list[2], darks = list[3]})
end

-- Each returns the arrays of a call; the name of the option that limits it; and call(limits), which
-- returns what it made and a report, nil for a plan alone.
local clients = {}

local function tiled(make, plan_alone)
    return function()
        local image, psf = images()
        local own = tables.merged(make())
        if plan_alone then
            return {image, psf}, "budget", function(limits)
                plan_alone(mb.volumes.of_array(image), psf, nil, tables.merged(own, limits))
            end
        end
        return {image, psf}, "budget", function(limits)
            return mb.tiled_deconv.richardson_lucy(image, psf, tables.merged(own, limits))
        end
    end
end

local function blended()
    return tables.merged({mode = "blended", iterations = up_to(2), boundary = "reflect"},
        some {overlap = number() < 0.5, acceleration = "biggs_andrews"})
end

clients.blended_tiles = tiled(blended)
clients.plan_of_blended_tiles = tiled(blended, mb.tiled_deconv.plan)
clients.exact_tiles = tiled(function()
    return tables.merged({iterations = up_to(2)}, some {overlap = number() < 0.5,
        boundary = one_of {"reflect", "circular", "zero"}, acceleration = "heavy_ball"})
end)
clients.plan_of_tiles = tiled(function()
    return some {boundary = "reflect", overlap = number() < 0.5}
end, mb.tiles.plan)

function clients.tiles()
    local image, psf = images()
    local own = some {boundary = "reflect", overlap = number() < 0.5, on_tile = function() end}
    return {image, psf}, "budget", function(limits)
        local result, _, report = mb.tiles.convolve(image, psf, tables.merged(own, limits))
        return result, report
    end
end

function clients.blocks()
    local image = images()
    local own = some {overlap = number() < 0.5, halo = up_to(2), combine = "sum",
        block = up_to(2)}
    local function fn(block)
        return own.combine and mb.reduce(block, "sum") or mb.gaussian_filter(block, 1)
    end
    return {image}, "budget", function(limits)
        return mb.chunked(fn, image, tables.merged(own, limits))
    end
end

local METHODS <const> = {"auto", "fbp", "fourier", "sirt", "cgls"}

local function recon_options(center)
    local method = one_of(METHODS)
    return tables.merged({method = method, quiet = true,
        iterations = #method == 4 and method ~= "auto" and 2 or nil},
        some {center = center, chunk = up_to(2), dtype = "u16", overlap = number() < 0.5})
end

function clients.reconstruction()
    local list, angles, center = frames()
    local own = tables.merged(recon_options(center), {flats = list[2], darks = list[3]})
    return list, "available", function(limits)
        return mb.recon.reconstruct(list[1], angles, tables.merged(own, limits))
    end
end

function clients.plan_of_a_reconstruction()
    local list, angles, center = frames()
    local own, scan = recon_options(center), scan_of(list, angles)
    return list, "available", function(limits)
        mb.recon.plan(scan, tables.merged(own, limits))
    end
end

function clients.pipeline()
    local list, angles, center = frames()
    local recipe = {"flat_field", "minus_log", {"median", size = 3},
        number() < 0.3 and {"center"} or {"center", column = center}, {one_of {"fbp", "fourier"}},
        number() < 0.5 and {"rescale", dtype = "uint8", percentiles = {0.1, 99.9}} or nil}
    local own, scan = some {overlap = number() < 0.5, block = up_to(2)}, scan_of(list, angles)
    return list, "budget", function(limits)
        local made = mb.pipeline.new(scan, recipe, tables.merged(own, {quiet = true}, limits))
        return nil, made:run(function() end)
    end
end

function clients.consensus()
    local image, psf = images()
    return {image, psf}, nil, function()
        return (mb.deconv.gradient_consensus(image, psf, {iterations = 2}))
    end
end

local original = host:budget()

local UNITS <const> = {B = 1, bytes = 1, KiB = 1 << 10, MiB = 1 << 20}

-- Calls with `bytes` as the option, or beyond what is live as the budget of the device. Returns what
-- pcall returns, what was made is released.
local function try(call, option, bytes)
    mb.collect()
    host:budget(option and original or mb.pool.stats("host").live + bytes)
    local ok, made, report = pcall(call, option and {[option] = bytes} or {})
    host:budget(original)
    if ok and mb.array.is_array(made) then
        made:release()
    end
    return ok, made, report
end

-- Follows the advice of a call with a budget that is too small. Returns what is enough, nil where
-- the first one was.
local function follow(what, call, option)
    local ok, err = try(call, option, one_of {512, 1024, 4096})
    if ok then
        return nil
    end
    assert.equal("budget", err.code, what .. tostring(err))
    assert.equal(option, err.limited_by, what .. tostring(err))
    assert.is_string(err.enough_for, what .. tostring(err))
    assert.matches((option and "give the option " .. option .. " at least"
        or "give a budget of at least") .. (" %%S+ %%S+ %%(%d bytes%%) for %s"):format(err.enough,
        err.enough_for), err.message)
    -- No part of it is said to take more than what is enough for all.
    local figure, unit = err.message:match "smallest tiles .- take ([%d.]+) (%a+)"
    assert.is_true(not figure or figure * UNITS[unit] <= err.enough * 1.01, err.message)
    mb.collect()
    local enough = err.enough - (option and 0 or mb.pool.stats("host").live)
    local report
    ok, err, report = try(call, option, enough)
    assert.is_true(ok, ("%s with %d: %s"):format(what, enough, tostring(err)))
    assert.is_not_false(report and report.as_planned, what)
    ok, err = try(call, option, enough * 9 // 10)
    assert.is_false(ok, ("%s, which runs with nine tenths of %d"):format(what, enough))
    assert.equal("budget", err.code)
    return enough
end

-- Follows what a plan of a call says with a budget of the device that is too small.
local function follow_plan(what, call)
    mb.collect()
    local live = mb.pool.stats("host").live
    local function planned(bytes)
        host:budget(bytes)
        local ok, made = pcall(number() < 0.5 and mb.dry_run or mb.plan, function()
            local made <close> = call {} -- luacheck: ignore
        end)
        mb.collect()
        host:budget(original)
        assert.is_true(ok, what .. tostring(made))
        return made
    end
    local beyond = planned(live + one_of {512, 1024, 4096}).beyond
    if not beyond then
        return
    end
    assert.same({"host"}, {beyond[1].device, beyond[2]})
    local enough = beyond[1].enough
    assert.is_nil(planned(enough).beyond, what)
    assert.is_true((try(call, nil, enough - live)), ("%s with %d"):format(what, enough))
    local again = planned(live + (enough - live) * 9 // 10).beyond
    assert.is_not_nil(again, ("%s, which runs with nine tenths of %d"):format(what, enough))
    assert.is_true(math.abs(again[1].enough - enough) <= enough // 8, what)
end

describe("the budget that an error names, of", function()
    before_each(function()
        mb.collect()
    end)

    after_each(function()
        host:budget(original)
    end)

    for _, name in ipairs(tables.keys(clients)) do
        it((name:gsub("_", " ")) .. ", is enough at the first try, and hardly more than the least", function()
            for i = 1, COUNT do
                local arrays, option, call = clients[name]()
                local by_option = number() < 0.5
                follow(("%s %d"):format(name, i), call, by_option and option or nil)
                for _, array in ipairs(arrays) do
                    array:release()
                end
            end
        end)
    end

    -- A plan is several searches, so few of them are among what is always run.
    for _, name in ipairs(COUNT > 1 and tables.keys(clients) or {"blocks", "plan_of_tiles",
        "plan_of_a_reconstruction", "tiles"}) do
        it("a plan of " .. name:gsub("_", " ") .. ", is enough at the first try, and hardly more "
            .. "than the least", function()
            for i = 1, COUNT do
                local arrays, _, call = clients[name]()
                follow_plan(("%s %d"):format(name, i), call)
                for _, array in ipairs(arrays) do
                    array:release()
                end
            end
        end)
    end

    it("an option and a device, is that of both where both are too small", function()
        local image <close> = mb.random({6, 20, 24}, {seed = 1, low = 1, high = 9})
        local psf <close> = mb.psf_gaussian({3, 5, 5}, 1)
        local volume, options = mb.volumes.of_array(image), {boundary = "reflect", budget = 1024}
        mb.collect()
        local live = mb.pool.stats("host").live
        host:budget(live + 2048)
        local text, err = helper.failure(mb.tiles.plan, volume, psf, nil, options)
        host:budget(original)
        assert.equal("budget", err.limited_by)
        assert.is_true(err.enough > 2048)
        assert.matches(("give the option budget at least [^;]*; it also needs a budget of at least "
            .. "%%S+ %%S+ %%(%d bytes%%) of host"):format(live + err.enough), text)
        options.budget = err.enough
        host:budget(live + err.enough)
        assert.is_true(mb.tiles.plan(volume, psf, nil, options).peak <= err.enough)
        -- the device alone
        options.budget = 3072
        host:budget(live + 1024)
        text, err = helper.failure(mb.tiles.plan, volume, psf, nil, options)
        host:budget(original)
        assert.is_nil(err.limited_by)
        assert.matches(("; it also needs the option budget of at least %d bytes"):format(err.enough
            - live), text)
    end)

    it("tiles, is beside no larger figure of its smallest ones", function()
        local image <close> = mb.random({6, 20, 24}, {seed = 1, low = 1, high = 9})
        local psf <close> = mb.psf_gaussian({3, 5, 5}, 1)
        follow("many small tiles", function(limits) -- which take more than fewer larger ones
            return mb.tiled_deconv.richardson_lucy(image, psf, tables.merged({iterations = 1},
                limits))
        end, "budget")
        local text, err = helper.failure(mb.tiled_deconv.richardson_lucy, image, psf,
            {iterations = 1, budget = 1024})
        assert.matches("no tiles fit: 1 KiB are available", text)
        assert.is_true(err.enough > 1024)
        -- All tiles take more than a few of them.
        text, err = helper.failure(mb.tiled_deconv.richardson_lucy, image, psf,
            {iterations = 1, mode = "blended", budget = 45000})
        local figure, unit = text:match "take ([%d.]+) (%a+)"
        assert.is_true(figure * UNITS[unit] > 45000 and figure * UNITS[unit] <= err.enough * 1.01)
    end)

    it("two devices, is that of each", function()
        local other = mb.device "host:1"
        local before = other:budget()
        local image <close> = mb.random({6, 20, 24}, {seed = 1, low = 1, high = 9})
        local psf <close> = mb.psf_gaussian({3, 5, 5}, 1)
        local volume = mb.volumes.of_array(image)
        local options = {boundary = "reflect", devices = {host, other}}
        mb.collect()
        local live = mb.pool.stats("host").live
        host:budget(live + 1024)
        other:budget(2048)
        local text, err = helper.failure(mb.tiles.plan, volume, psf, nil, options)
        assert.matches("for tiles.plan, on host and host:1 each", text)
        host:budget(err.enough)
        other:budget(err.enough)
        assert.is_true(mb.tiles.plan(volume, psf, nil, options).peaks["host:1"] <= err.enough)
        host:budget(original)
        other:budget(before)
    end)
end)
