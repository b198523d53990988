-- Arrays that functions of the caller make, keep and release during a run are the caller's: the run
-- is as planned beside them, and nothing says that it takes other bytes than were promised.

local mb = require "moonbeam"

describe("arrays of the caller's functions", function()
    local kept

    before_each(function()
        mb.collect()
        kept = {}
    end)

    after_each(function()
        for _, array in ipairs(kept) do
            array:release()
        end
    end)

    -- Functions that make arrays: released at once, all kept, the latest one kept, and one that
    -- releases what was there before the run.
    local function each_way(try)
        local function make()
            kept[#kept + 1] = mb.zeros {16, 32, 32}
        end
        local ways = {
            released = function() mb.zeros({16, 32, 32}):release() end,
            kept = make,
            latest = function()
                make()
                if #kept > 1 then
                    table.remove(kept, 1):release()
                end
            end,
            before = function()
                if kept[1] then
                    table.remove(kept):release()
                end
            end,
        }
        for name, way in pairs(ways) do
            for i = 1, name == "before" and 3 or name == "latest" and 1 or 0 do
                kept[i] = mb.zeros {16, 32, 32}
            end
            assert.is_true(try(way).as_planned, name)
            while kept[1] do
                table.remove(kept):release()
            end
        end
    end

    it("that are called for iterations and tiles are not of the deconvolution", function()
        local image <close> = mb.random({6, 20, 24}, {seed = 1, low = 1, high = 9})
        local psf <close> = mb.psf_gaussian({3, 5, 5}, 1)
        for _, option in ipairs {"on_iteration", "on_tile"} do
            for _, place in ipairs {"device", "host"} do
                each_way(function(way)
                    local result <close>, report = mb.tiled_deconv.richardson_lucy(image, psf,
                        {iterations = 3, place = place, tile = {6, 10, 12}, [option] = way})
                    assert.same(image.shape, result.shape)
                    return report
                end)
            end
        end
        each_way(function(way)
            local result <close>, report = mb.tiled_deconv.richardson_lucy(image, psf,
                {mode = "blended", iterations = 1, tile = {6, 10, 12}, on_tile = way})
            assert.same(image.shape, result.shape)
            return report
        end)
        each_way(function(way)
            local result <close>, _, report = mb.tiles.convolve(image, psf, {tile = {6, 10, 12},
                on_tile = way})
            assert.same(image.shape, result.shape)
            return report
        end)
    end)

    it("that take results are not of the work in blocks", function()
        local image <close> = mb.random({8, 20, 24}, {seed = 1, low = 1, high = 9})
        each_way(function(way)
            return (select(2, mb.chunked("gaussian_filter", image, {params = {sigma = 1},
                block = 2, sink = way})))
        end)
        local raw <close> = mb.random({16, 6, 16}, {seed = 1, low = 0.2, high = 0.9})
        local scan <close> = mb.scan.of_arrays(raw, mb.tomo.angles(16))
        each_way(function(way)
            return mb.pipeline.new(scan, {"minus_log", {"center", column = 7.5}, {"fbp"}},
                {input = "transmission", block = 2, quiet = true}):run(way)
        end)
    end)
end)
