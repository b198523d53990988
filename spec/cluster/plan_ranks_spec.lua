-- What a plan says of ranks: bytes of a rank and of a node, seconds, and Slurm scripts.

local commands = require "spec.support.commands"
local files = require "spec.support.files"
local helper = require "spec.helper"
local mb = require "moonbeam"
local pace = require "moonbeam.pipeline.shares.pace"
local ranks = require "spec.support.ranks"
local rank_plan = require "moonbeam.pipeline.shares.rank_plan"
local slurm = require "moonbeam.pipeline.shares.slurm"

-- What each script for ranks says before the program's name.
local THREADS <const> = "export OMP_NUM_THREADS=$SLURM_CPUS_PER_TASK"
local AGAIN <const> = "# Submitted again, it goes on where it was ended (scancel, a limit, a node)."
local SRUN <const> = "exec srun --mpi=pmix --kill-on-bad-exit=1 "
    .. "--cpus-per-task=$SLURM_CPUS_PER_TASK "

local RECIPE <const> = {{"dezinger", size = 3, threshold = 50}, "flat_field", "minus_log",
    {"fbp", center = 31.5}}

describe("the plan of ranks", function()
    local shell, path

    setup(function()
        shell = commands.folder()
        path = shell:path "scan.h5"
        commands.must("simulate.lua", path .. " --size 64 --rows 40 --angles 40 --quiet")
    end)
    teardown(function()
        shell:remove()
    end)

    local function pipeline(options, recipe)
        local scan = assert(mb.scan.open(path))
        options.quiet = true
        return mb.pipeline(scan, recipe or RECIPE, options), scan
    end

    it("gives every rank what its plan says, and a node as many times more", function()
        local own <const> = {ranks = 6, ranks_per_node = 2}
        local p, scan = pipeline {devices = "planned:h200", ranks = 6}
        local _ <close> = scan
        local made = p:plan()
        local plan = rank_plan.of(made, own)
        assert.same({6, 2, 3, 1}, {plan.ranks, plan.per_node, plan.nodes, plan.gpus})
        assert.same(made.peaks, plan.peaks)
        assert.equal(made.pinned, plan.pinned)
        assert.same({16, 3}, {plan.rows, plan.idle}) -- packets of 16 rows
        local text = rank_plan.text(plan)
        for _, device in ipairs(made.job.devices) do
            assert.matches(("at most [^\n]*%%(%d bytes%%) on %s"):format(made.peaks[device.id],
                device.id), text)
        end
        assert.matches(("2 GPUs, [^\n]*%%(%d bytes%%) of pinned"):format(2 * made.pinned), text)
        assert.matches(("--mem=%dM"):format(rank_plan.megabytes(plan)), text, 1, true)
        assert.equal(16 * math.ceil(2 * plan.process / (1 << 24)), rank_plan.megabytes(plan))
        local later = string.rep("what the process has later does not count", 1 << 17)
        assert.equal(plan.process, rank_plan.of(made, own).process, #later)
        local script = slurm.script(made, {"scan.h5", "--plan", "--slurm", "--ranks", "6",
            "--ranks-per-node=2", "-d", "planned:h200", "-o", "it's.h5"}, own)
        assert.equal(table.concat({"#!/bin/sh", "#SBATCH --nodes=3", "#SBATCH --ntasks=6",
            "#SBATCH --ntasks-per-node=2", "#SBATCH --cpus-per-task=8",
            ("#SBATCH --mem=%dM"):format(rank_plan.megabytes(plan)), "#SBATCH --gres=gpu:2",
            "#SBATCH --time=0:11:00", "#SBATCH --chdir=" .. mb.system.cwd(), AGAIN, THREADS,
            SRUN .. helper.program .. " reconstruct scan.h5 -o 'it'\\''s.h5' --resume auto --device "
            .. "cuda"}, "\n"), script)
    end)

    it("is of one rank for each node where a rank has several devices", function()
        local p, scan = pipeline {devices = "2xplanned:h200", ranks = 3}
        local _ <close> = scan
        local made = p:plan()
        local plan = rank_plan.of(made, {ranks = 3})
        assert.same({3, 2}, {plan.nodes, plan.gpus})
        for _, device in ipairs(made.job.devices) do
            assert.matches(("at most [^\n]*%%(%d bytes%%) on %s"):format(made.peaks[device.id],
                device.id), rank_plan.text(plan))
        end
        assert.matches("cpus%-per%-task=16\n.*gres=gpu:2\n.* reconstruct s %-%-resume auto %-%-device all$",
            slurm.script(made, {"s", "-d", "2xplanned:h200"}, {ranks = 3}))
        local ok, problem = pcall(rank_plan.of, made, {ranks = 4, ranks_per_node = 2})
        assert.is_false(ok)
        assert.matches("would all take the same ones", problem.message, 1, true)
    end)

    it("asks for the processors that a rank keeps busy", function()
        for _, case in ipairs {{"host", nil, mb.system.processors()}, {"planned:h200", 3, 6},
            {"2xplanned:h200", nil, 16}} do
            local p, scan = pipeline {devices = case[1], threads = case[2], ranks = 2}
            local _ <close> = scan
            local script = slurm.script(p:plan(), {}, {ranks = 2})
            assert.matches(("\n#SBATCH --cpus-per-task=%d\n"):format(case[3]), script, 1, true)
            assert.matches("\n" .. THREADS .. "\n" .. SRUN, script, 1, true)
        end
        local options = ("'%s' --center 31.5 --device host --plan --slurm"):format(path)
        assert.matches(("\n#SBATCH --cpus-per-task=%d\n"):format(math.max(1,
            mb.system.processors() // 2)), commands.must("reconstruct.lua", options
            .. " --ranks 4 --ranks-per-node 2"), 1, true)
    end)

    it("names ranks that have nothing to do, and scratch disk", function()
        local p, scan = pipeline({host_budget = 512, scratch = shell.folder, rows = {1, 5}},
            {"flat_field", "minus_log", {"fbp", center = 31.5}, {"rescale", dtype = "uint8",
            percentiles = {1, 99}}})
        local _ <close> = scan
        local made = p:plan()
        local plan = rank_plan.of(made, {ranks = 8})
        assert.equal(3, plan.idle)
        assert.is_nil(plan.seconds)
        assert.matches("nothing for 3 of them", rank_plan.text(plan), 1, true)
        assert.equal(made.scratch, plan.scratch)
        assert.is_true(made.scratch > 0)
        assert.matches(("#SBATCH --tmp=%dM"):format(math.ceil(made.scratch / (1 << 20))),
            slurm.script(made, {}, {}), 1, true)
        assert.is_nil(slurm.script(made, {}, {ranks = 8}):find("--tmp", 1, true)) -- a shared disk
    end)

    it("tells about how long it takes, and what binds", function()
        local p, scan = pipeline {devices = "planned:h200"}
        local _ <close> = scan
        local made = p:plan()
        local one, four = pace.of(made, 1, 1), pace.of(made, 4, 4)
        for _, name in ipairs {"read", "compute", "write", "links"} do
            assert.is_true(one[name] > 0)
            assert.is_true(math.abs(one[name] / four[name] - 4) < 1e-9, name)
        end
        assert.equal(made.sections[1].read_bytes / pace.DISK, one.read)
        assert.equal(made.sections[1].write_bytes / pace.DISK, one.write)
        assert.equal(math.max(one.read, one.compute, one.write, one.links), one.total)
        -- Several ranks of one node share its disk, but not its GPUs.
        local shared = pace.of(made, 4, 1)
        assert.equal(one.read, shared.read)
        assert.is_true(math.abs(one.compute / shared.compute - 4) < 1e-9)
        assert.matches(one.binds == "write" and "writing binds" or "binds", pace.text(one))
        assert.equal(11, pace.minutes {total = 15})
    end)

    it("asks for what any part takes, where parts are an array", function()
        local p, scan = pipeline {part = {1, 7}}
        local _ <close> = scan
        local asked, peaks, process, peak = {p:plan()}, {}, 0, 0
        local script = slurm.script(asked[1], {"scan.h5"}, {part = {1, 7}}, function(part)
            asked[#asked + 1] = p:part({part = part}):plan()
            return asked[#asked]
        end)
        for number = 1, 7 do
            peaks[number] = p:part({part = {number, 7}}):plan().peak
        end
        assert.is_true(peaks[1] < peaks[2]) -- 5 and 6 rows
        assert.is_true(#asked < 8 and #asked > 2)
        for _, made in ipairs(asked) do
            process, peak = math.max(process, rank_plan.process(made)), math.max(peak, made.peak)
        end
        assert.equal(math.max(table.unpack(peaks)), peak)
        assert.equal(16 * math.ceil(process / (1 << 24)), tonumber(script:match "%-%-mem=(%d+)M"))
        assert.matches("#SBATCH --array=1-7", script, 1, true)
        assert.matches("moonbeam reconstruct scan.h5 --resume auto --device host --part "
            .. "$SLURM_ARRAY_TASK_ID/7", script, 1, true)
    end)

    for _, case in ipairs {{"of the fixed chain", "--center 31.5"}, {"of a recipe with a store",
        "--recipe "}} do
        ranks.it(case[1] .. " is what ranks take that mpirun has started", function()
            files.write(shell:path "r.lua", [[{"flat_field", "minus_log", {"fbp", center = 31.5},
                {"rescale", dtype = "uint8", percentiles = {1, 99}}}]])
            local tall = shell:path "tall.h5"
            commands.must("simulate.lua", tall .. " --size 64 --rows 96 --angles 40 --quiet "
                .. "--overwrite")
            local words = ("'%s' %s --device host -o '%s' --chunk 8"):format(tall, case[2]
                .. (case[2]:find "recipe" and shell:path "r.lua" or ""), shell:path "v.h5")
            for count = 2, 3 do
                local text = commands.must("reconstruct.lua", ("%s --plan --ranks %d "
                    .. "--ranks-per-node %d"):format(words, count, count))
                local bytes = tonumber(text:match "  rank +at most [^\n]*%((%d+) bytes%) on host")
                local pinned = tonumber(text:match "  rank +[^\n]*%((%d+) bytes%) of pinned")
                assert.is_not_nil(bytes)
                local node = tonumber(text:match "  node [^\n]*%-%-mem=(%d+)M")
                local there = files.run(ranks.command(count, ("reconstruct %s --plan"):format(
                    words)))
                local process = tonumber(there:match "process +at most ([%d.]+) MiB")
                assert.is_true(node >= count * process, there) -- MPI is in the plan
                assert.equal(1, select(2, text:gsub("%-%-mem=", ""))) -- one figure
                local output, _, status = files.run(ranks.command(count,
                    ("reconstruct %s --overwrite --verbose"):format(words)))
                assert.equal(0, status, output)
                local most = 0
                for predicted, measured in output:gmatch
                    "rank %d+ on %S+ host, predicted (%d+) bytes, measured (%d+) bytes" do
                    assert.equal(predicted, measured)
                    assert.is_true(tonumber(measured) <= bytes)
                    most = math.max(most, tonumber(measured))
                end
                assert.equal(bytes, most, output)
                local blocks, waits = 0, 0
                for own, told in output:gmatch "rank %d on %S+ (%d+) blocks? in [%d.]+ s, ([^\n]+)" do
                    blocks = blocks + tonumber(own)
                    waits = waits + select(2, told:gsub("%d+%.%d+ s for %a", ""))
                end
                assert.equal(case[2]:find "recipe" and 24 or 12, blocks)
                assert.equal(4 * count, waits)
                assert.matches(("pinned     predicted %d bytes, measured %d bytes"):format(pinned,
                    pinned), output, 1, true)
            end
        end)
    end

    it("is printed by the command line, for recipes and without", function()
        for _, way in ipairs {"--center 31.5", "--recipe " .. shell:path "r.lua"} do
            files.write(shell:path "r.lua",
                [[{"flat_field", "minus_log", {"fbp", center = 31.5}}]])
            local options = ("'%s' %s --device planned:h200 --plan --ranks 8"):format(path, way)
            local text = commands.must("reconstruct.lua", options .. " --ranks-per-node 4")
            assert.matches("ranks      8 on 2 nodes, 4 on each", text, 1, true)
            local script = commands.must("reconstruct.lua", options .. " --slurm")
            assert.matches("^#!/bin/sh\n", script)
            assert.matches("--nodes=8\n", script, 1, true)
            assert.matches(SRUN .. helper.program .. " reconstruct " .. path, script, 1, true)
            assert.is_nil(script:find("--ranks", 1, true))
            assert.equal("", (files.run("sh -n -c '" .. script:gsub("'", "'\\''") .. "'")))
        end
        local function refused(options, expected)
            local status, text = commands.run("reconstruct.lua", ("'%s' %s"):format(path, options))
            assert.equal(2, status)
            assert.matches(expected, text, 1, true)
            assert.is_nil(text:find("memory", 1, true), text) -- the plan is not printed
        end
        refused("--ranks 2", "--ranks needs --plan")
        refused("--plan --ranks-per-node 2", "--ranks-per-node needs --ranks")
        refused("--plan --ranks 2 --part 1/2", "give one of them")
        refused("--plan --center 31.5 --ranks 2 --ranks-per-node 3", "more than all ranks, --ranks 2")
        refused("--plan --center 31.5 --device 2xplanned:h200 --ranks 4 --ranks-per-node 2",
            "would all take the same ones")
    end)
end)
