-- Ranks that share the tiles of a deconvolution: the bits of one process, whatever their number,
-- also if one of them is killed and another number of them goes on.

local core = require "moonbeam.core"
local files = require "spec.support.files"
local mb = require "moonbeam"
local ranks = require "spec.support.ranks"

-- What a script says first: run(resume) deconvolves on all ranks; `die`: the rank and the number of
-- the tile after which it is killed.
local RUN = [[
local mb = require "moonbeam"
local path, cluster = "FOLDER/result.npy", mb.cluster
function run(resume, die)
    local source <close> = mb.images.open "FOLDER/image.npy"
    local psf <close> = mb.images.read("FOLDER/psf.npy", "host")
    local journal <close> = mb.tiled_deconv.journal(path, {inputs = {"FOLDER/image.npy"},
        resume = resume})
    local leads, done = cluster.rank == 0, 0
    local out <close> = leads and mb.images.create(path, {shape = source.shape, dtype = "f32",
        channels = 1, frames = 1, overwrite = journal:may_replace()}) or nil
    local report = mb.tiled_deconv.richardson_lucy_volume(source, psf, out and out:volume()
        or mb.volumes.planned(source.shape, "f32"), {OPTIONS journal = journal, on_tile = function()
            done = done + 1
            if die and cluster.rank == die[1] and done == die[2] then
                os.execute("kill -KILL " .. mb.system.pid())
            end
        end})
    assert(report.as_planned)
    journal:finishing()
    if out then
        out:finish()
    end
    journal:finish()
    return report, done
end
]]

local TILE <const> = 'tile = {6, 14, 16}, pinned = "2Mi", '
local CASES <const> = {
    {name = "blended", options = TILE .. 'iterations = 3, mode = "blended",',
        counts = {1, 2, 4}, again = {{3, 2}, {2, 4}}},
    {name = "exact", options = TILE .. 'iterations = 3, place = "file",', counts = {2},
        again = {{2, 3}}},
    {name = "exact, with momentum and metrics", options = TILE .. 'iterations = 3, place = "file", '
        .. 'acceleration = "heavy_ball", metrics = true,', counts = {3}, again = {{3, 1}}},
    {name = "exact, with Biggs and Andrews and total variation", options = TILE .. 'iterations = 3, '
        .. 'place = "file", acceleration = "biggs_andrews", boundary = "circular", '
        .. 'total_variation = 0.01,', counts = {2}, again = {{2, 3}}},
}

describe("ranks", function()
    local folder, path, session

    setup(function()
        folder = files.folder()
        session = ranks.session(folder)
        path = folder .. "/result.npy"
        local image <close> = mb.random({11, 26, 31}, {seed = 3, low = 1, high = 50})
        local psf <close> = mb.psf_gaussian({3, 4, 5}, 1.2)
        mb.npy.write(folder .. "/image.npy", image)
        mb.npy.write(folder .. "/psf.npy", psf)
    end)
    teardown(function()
        session:close()
        files.remove(folder)
    end)
    before_each(function() -- what a test that failed has left
        files.run(("rm -rf '%s'*"):format(path))
    end)

    local function script(case, text)
        return (RUN:gsub("FOLDER", folder):gsub("OPTIONS", function()
            return case.options
        end)) .. text
    end

    local references = {}
    local function reference(case)
        if not references[case] then
            local output, ok = files.run_script(folder, script(case, "run()"), "MOONBEAM_STRICT=1")
            assert.is_true(ok, output)
            references[case] = files.read(path)
            os.remove(path)
        end
        return references[case]
    end

    local function ended_well(case, what)
        assert(files.read(path) == reference(case), what .. ": other bits")
        os.remove(path)
        assert.equal("image.npy\npsf.npy\n", (files.run(("ls -A '%s' | grep -v -e '[.]lua$' -e "
            .. "'^serve-'"):format(folder))), what)
    end

    -- The run takes what is planned, and the first rank has not done it all: when its first tile is
    -- done, which is one of at most four that it has taken, it waits for that of another rank.
    local SHARED <const> = [[
local name, met = "FOLDER/serve-tile-", cluster.size == 1
function await()
    if met then
        return
    end
    met = true
    assert(io.open(name .. math.min(cluster.rank, 1), "w")):close()
    local began = mb.system.clock()
    while cluster.rank == 0 and not mb.system.stat(name .. 1) and mb.system.clock() - began < 60 do
        mb.system.sleep(0.005)
    end
end
local report, done = run()
local all = 0
for _, own in ipairs(cluster.gather(done)) do
    all = all + own
end
os.remove(name .. math.min(cluster.rank, 1))
assert(done < all or cluster.size == 1)
print(("%d tiles"):format(all))
]]

    for _, case in ipairs(CASES) do
        ranks.it(("share tiles that are %s, with the bits of one process"):format(case.name),
            function()
                reference(case)
                local tiles
                for _, count in ipairs(case.counts) do
                    local output, status = session:run(count, (script(case, (SHARED:gsub("FOLDER",
                        folder))):gsub("done = done %+ 1", "%0\n            await()")))
                    assert.equal(0, status, output)
                    tiles = tiles or output:match "%d+ tiles"
                    assert.matches(tiles .. "\n", output, 1, true)
                    ended_well(case, count .. " ranks")
                end
            end)

        ranks.it(("go on with tiles that are %s, in another number"):format(case.name), function()
            reference(case)
            for i, numbers in ipairs(case.again) do
                local _, status = ranks.run(folder, numbers[1], script(case,
                    ("run(false, {%d, %d})"):format(i % numbers[1], i)))
                assert.is_true(status ~= 0)
                assert.is_true(core.unfinished.exists(path))
                assert.is_nil(mb.system.stat(path))
                local output
                output, status = session:run(numbers[2], script(case, "run(true)"))
                assert.equal(0, status, output)
                ended_well(case, ("%d, then %d ranks"):format(numbers[1], numbers[2]))
            end
        end)
    end

    ranks.it("take the next tile when they are free", function()
        for _, case in ipairs {CASES[1], CASES[3]} do
            reference(case)
            -- Rank 1 rests after each of its tiles.
            local text = script(case, [[
local _, done = run()
local all = cluster.gather(done)
if cluster.rank == 0 then
    print("tiles", table.unpack(all))
end
]]):gsub("done = done %+ 1", "%0\n            mb.system.sleep(cluster.rank == 1 and 0.4 or 0)")
            local output, status = session:run(2, text)
            assert.equal(0, status, output)
            local first, second = output:match "tiles\t(%d+)\t(%d+)"
            local least = case == CASES[1] and 1 or 2 -- of 8 tiles a rank reads up to 3 ahead
            assert.is_true(tonumber(first) > least * tonumber(second), output)
            ended_well(case, "a rank that rests")
        end
    end)

    ranks.it("go on with the other devices of a rank where one is lost", function()
        for _, case in ipairs {CASES[1], CASES[2]} do
            reference(case)
            local lost = 0
            for i, call in ipairs {20, 120, 200, 250, 400} do
                local output, status = session:run(2, (script(case, ([[
local device -- which no script before has lost
for number = 6, 1, -1 do
    local one = mb.device("host:" .. number)
    device = one:lost() and device or one
end
devices = {device.id, "host:7"}
if cluster.rank == %d then
    mb.debug.lose_device(device, %d)
end
local report = run()
mb.debug.lose_device(device, 0)
for rank, own in ipairs(cluster.gather {(device:lost()), #report.lost}) do
    assert(own[1] == (own[2] == 1))
    if cluster.rank == 0 and own[1] then
        print("lost")
    end
end
]]):format(i % 2, call)):gsub("journal = journal,", "%0 devices = devices,")))
                assert.equal(0, status, ("call %d: %s"):format(call, output))
                lost = lost + (output:find("lost", 1, true) and 1 or 0)
                ended_well(case, ("call %d"):format(call))
            end
            assert.is_true(lost >= 2, ("only %d were lost"):format(lost))
        end
    end)

    ranks.it("say what is kept where one fails", function()
        local case = CASES[2]
        local output, status = ranks.run(folder, 2, (script(case, "run()"):gsub("done = done %+ 1",
            [[%0
            if cluster.rank == 1 and done == 3 then
                mb.system.sleep(0.5)
                error("no more", 0)
            end]]):gsub("resume = resume", "%0, tell = print")))
        assert.equal(1, status)
        assert.matches("rank 1 on %S+ [^\n]*no more", output)
        assert.matches("unfinished' keeps at least 0 of 3 iterations", output, 1, true)
        files.run(("rm -rf '%s'"):format(path .. ".unfinished"))
    end)

    ranks.it("tell the first failure, not what follows from it", function()
        local output, status = ranks.run(folder, 2, ([[
            local mb = require "moonbeam"
            local name, leads = "%s", mb.cluster.rank == 0
            local _ <close> = leads and setmetatable({}, {__close = function()
                mb.system.sleep(0.8) -- longer than ranks have to fail in the same way
            end}) or nil
            local journal <close> = mb.tiled_deconv.journal(name, {})
            if leads then
                error("the device is lost", 0)
            end
            while mb.system.stat(name .. ".unfinished") do
                mb.system.sleep(0.005)
            end
            error("the folder is gone", 0)
        ]]):format(path))
        assert.equal(1, status, output)
        assert.matches("rank 0 on %S+ [^\n]*the device is lost", output)
        assert.is_nil(output:find("is gone", 1, true), output)
    end)

    ranks.it("may be more than tiles", function()
        local case = {name = "two tiles", options = 'tile = {11, 26, 20}, pinned = "2Mi", '
            .. 'iterations = 2, place = "file",'}
        reference(case)
        local output, status = session:run(4, script(case, "run()"))
        assert.equal(0, status, output)
        ended_well(case, "ranks without tiles")
    end)

    ranks.it("work on the command deconvolve, and the first one speaks", function()
        local function command(output, options)
            return ("deconvolve '%s/image.npy' '%s/psf.npy' --iterations 3 --tile 6,14,16 -o "
                .. "'%s/%s' --quiet %s"):format(folder, folder, folder, output, options)
        end
        for _, mode in ipairs {"blended", "exact"} do
            local options = "--device host --tiles " .. mode
            files.run(("'%s' %s"):format(mb.system.program(), command("one.npy", options)))
            local output, _, status = files.run(ranks.command(3, command("three.npy", options)))
            assert.equal(0, status, output)
            local _, told = output:gsub("seam metric", "")
            assert.equal(mode == "blended" and 1 or 0, told, output)
            assert.is_true(files.read(folder .. "/one.npy") == files.read(folder .. "/three.npy"))
            os.remove(folder .. "/one.npy")
            os.remove(folder .. "/three.npy")
        end
        local output, _, status = files.run(ranks.command(2, command("two.npy", "--device host")))
        assert.equal(1, status)
        assert.matches("the whole image fits, and there are 2 ranks, which share tiles", output, 1,
            true)
        assert.is_nil(mb.system.stat(folder .. "/two.npy"))
        output, _, status = files.run(ranks.command(2, command("two.npy",
            "--device host --tiles exact --place host")))
        assert.equal(1, status)
        assert.matches("what ranks share are files", output, 1, true)
    end)

    ranks.it("take what the command's plan of so many ranks says", function()
        local function peak_of(text)
            return tonumber(text:match "\nmemory +peak [^\n]-%((%d+) bytes%)")
        end
        for _, mode in ipairs {"blended", "exact"} do
            local words = ("deconvolve '%s/image.npy' '%s/psf.npy' --iterations 3 --tile 6,14,16 "
                .. "--device host --tiles %s -o '%s/out.npy'"):format(folder, folder, mode, folder)
            local function plan(more)
                local output, ok = files.run(("'%s' %s --plan %s"):format(mb.system.program(),
                    words, more))
                assert.is_true(ok, output)
                return output
            end
            local alone, text = plan "", plan "--ranks 3 --ranks-per-node 3"
            local peak = peak_of(text)
            assert.are_not.equal(peak_of(alone), peak)
            assert.matches("\nranks      3 on 1 node, 3 on each; %d+ tiles", text)
            local bound = tonumber(text:match "process +at most ([%d.]+) MiB in all\n")
            local node = tonumber(text:match "node +the processes at most [^\n]-%-%-mem=(%d+)M")
            assert.is_true(node >= 3 * (bound - 0.1) and node < 3 * bound + 17, text)
            assert.equal(1, select(2, text:gsub("%-%-mem=", ""))) -- one figure, of the node
            assert.equal(0, node % 16)
            local output, _, status = files.run(ranks.command(3, words))
            assert.equal(0, status, output)
            assert.equal(peak, peak_of(output)) -- the plan of the ranks themselves
            local most = tonumber(output:match "process +at most ([%d.]+) MiB")
            assert.is_true(bound >= most, text .. output) -- MPI is in the plan
            local pinned = text:match "\npinned [^\n]*"
            assert.matches(pinned, output, 1, true)
            local count = 0
            for predicted, measured in output:gmatch
                "\nrank %d on %S+ host, predicted (%d+) bytes, measured (%d+) bytes" do
                assert.equal(predicted, measured)
                assert.is_true(tonumber(measured) <= peak, output)
                count = count + 1
            end
            assert.equal(3, count, output)
            local bar = tonumber(output:match "deconvolving: (%d+) tiles")
            assert.equal(tonumber(text:match "tiles +(%d+),") * (mode == "exact" and 6 or 1), bar)
            os.remove(folder .. "/out.npy")
        end
    end)

    it("are refused in plans that make no sense", function()
        local words = ("'%s' deconvolve '%s/image.npy' '%s/psf.npy' -o '%s/out.npy' --device host ")
            :format(mb.system.program(), folder, folder, folder)
        for more, expected in pairs {["--ranks 2"] = "--ranks needs --plan: start a run with mpirun",
            ["--plan --ranks-per-node 2"] = "--ranks-per-node needs --ranks",
            ["--plan --ranks 2 --ranks-per-node 3"] = "--ranks-per-node 3 is more than all ranks",
            ["--plan --ranks 2"] = "the whole image fits, and there are 2 ranks"} do
            local output, ok = files.run(words .. more)
            assert.is_false(ok)
            assert.matches(expected, output, 1, true)
        end
    end)

    ranks.it("have the memory for any tiles, side by side as no process has them", function()
        local image <close> = mb.random({37, 61, 83}, {seed = 3, low = 1, high = 900})
        local psf <close> = mb.psf_gaussian({7, 7, 7}, 1.3)
        mb.npy.write(folder .. "/uneven.npy", image)
        mb.npy.write(folder .. "/wide.npy", psf)
        local output, status = session:run(3, (script({options = 'iterations = 1, '
            .. 'place = "file", budget = "1300K",'}, "run()"):gsub("/image.npy", "/uneven.npy")
            :gsub("/psf.npy", "/wide.npy")))
        assert.equal(0, status, output)
        os.remove(path)
    end)

    ranks.it("are of one run", function()
        for _, case in ipairs {
            {TILE .. 'iterations = 2, mode = "blended", eps = 1 + cluster.rank,', "eps"},
            {TILE .. 'iterations = 2 + cluster.rank, place = "file",', "iterations"},
        } do
            local output, status = ranks.run(folder, 2, script({options = case[1]}, "run()"))
            assert.equal(1, status, output)
            assert.matches(case[2] .. " must be the same on all ranks: rank 0", output, 1, true)
        end
        local output, status = ranks.run(folder, 2, (script(CASES[1], "run()"):gsub("/result",
            "/result-", 1):gsub('npy", mb.cluster', '" .. mb.cluster.rank .. ".npy", mb.cluster')))
        assert.equal(1, status, output)
        assert.matches("the name of the result must be the same on all ranks", output, 1, true)
    end)
end)
