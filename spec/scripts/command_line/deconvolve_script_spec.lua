-- The script for Slurm of moonbeam deconvolve (deconvolve/slurm_job.lua): what it asks for, and that
-- its command does what was planned. scripts/slurm_trial runs such scripts under Slurm.

local files = require "spec.support.files"
local helper = require "spec.helper"
local mb = require "moonbeam"
local ranks = require "spec.support.ranks"

describe("the script of deconvolve for Slurm", function()
    local folder

    -- A command line in the folder: its standard output, standard error and status.
    local function run(words)
        local _, _, status = files.run(("cd '%s'; ('%s' %s > out 2> err)"):format(folder,
            helper.program, words))
        return files.read(folder .. "/out"), files.read(folder .. "/err"), status
    end

    local D <const> = "deconvolve i.npy p.npy -o v.npy --iterations 2 "

    local function script(more)
        local text, problem, status = run(D .. "--plan --slurm " .. more)
        assert.equal(0, status, problem)
        assert.equal("", (files.run("sh -n -c '" .. text:gsub("'", "'\\''") .. "'")))
        return text, problem
    end

    -- The words of a script's command behind the program's name.
    local function command_of(text)
        return text:match("\nexec [^\n]-" .. helper.program:gsub("%p", "%%%0") .. " ([^\n]+)\n$")
    end

    local function asked(text, name)
        return text:match("\n#SBATCH %-%-" .. name:gsub("-", "%%-") .. "=([^\n]+)\n")
    end

    setup(function()
        folder = files.folder()
        local image <close> = mb.random({20, 40, 36}, {seed = 3, low = 1, high = 50})
        local psf <close> = mb.psf_gaussian({5, 7, 6}, 0.8)
        mb.npy.write(folder .. "/i.npy", image)
        mb.npy.write(folder .. "/p.npy", psf)
    end)
    teardown(function()
        files.remove(folder)
    end)
    before_each(function()
        files.run(("cd '%s' && rm -rf v.npy* w* a b"):format(folder))
    end)

    it("asks for what the plan takes, and has what the plan has chosen", function()
        local text, problem = script "-d host --tiles exact"
        assert.equal("", problem)
        local plan = run(D .. "--plan -d host --tiles exact")
        local memory = tonumber((asked(text, "mem"):gsub("M", "")))
        -- Two processes differ by some pages, which may lie at a step of 16 MiB.
        assert.is_true(math.abs(memory - tonumber(plan:match "%-%-mem=(%d+)M")) <= 16)
        assert.equal(0, memory % 16)
        local budget = tonumber(text:match "%-%-budget (%d+)")
        assert.is_true(budget >= tonumber(plan:match "memory +peak [^\n]-%((%d+) bytes%)"))
        assert.equal(("#!/bin/sh\n#SBATCH --nodes=1\n#SBATCH --ntasks=1\n#SBATCH --cpus-per-task=%d\n"
            .. "#SBATCH --mem=%dM\n#SBATCH --chdir=%s\n"
            .. "export OMP_NUM_THREADS=$SLURM_CPUS_PER_TASK\n"
            .. "exec %s deconvolve i.npy p.npy -o v.npy --iterations 2 --tiles exact %s --budget %d "
            .. "--resume auto --device host\n"):format(mb.system.processors(), memory, folder,
            helper.program, plan:match "%-%-tile [%d,]+", budget), (text:gsub("# [^\n]*\n", "")))
        assert.matches("\n# no --time: ", text, 1, true)
        assert.matches("\n# Submitted again, it goes on", text, 1, true)
    end)

    it("keeps what was typed", function()
        local command = command_of((script("--tiles=auto -d host --budget 2M --resume auto -- -p gpu")))
        assert.equal("deconvolve i.npy p.npy -o v.npy --iterations 2 --budget 2M --tiles none "
            .. "--resume auto --device host", command)
        command = command_of((script("-t exact --tile 9,9,9 --place file -d host")))
        assert.matches("%-%-tile 9,9,9 %-%-place file %-%-tiles exact %-%-budget %d+ "
            .. "%-%-resume auto %-%-device host$", command)
        local text = run("--device planned:h200 --budget 2G " .. D .. "--plan --slurm")
        assert.matches(" %-%-budget=2G deconvolve i.npy .* %-%-tiles none %-%-host%-budget %d+ %-%-resume "
            .. "auto %-%-device cuda:0\n$", text)
        assert.equal(1, select(2, text:gsub("%-%-budget", "")))
    end)

    it("asks for GPUs and time, and names the devices, as reconstruct's does", function()
        for words, expected in pairs {["-d planned:h200"] = {"1", nil, "1", "cuda:0"},
            ["-d planned:h200 --tiles exact --ranks 4"] = {"4", "1", "1", "cuda:0"},
            ["-d planned:h200 --tiles exact --ranks 4 --ranks-per-node 2"] = {"2", "2", "2", "cuda"},
            ["-d 2xplanned:h200 --tiles exact --ranks 3"] = {"3", "1", "2", "all"}} do
            local text = script(words)
            assert.equal(expected[1], asked(text, "nodes"), words)
            assert.equal(expected[2], asked(text, "ntasks-per-node"), words)
            assert.equal("gpu:" .. expected[3], asked(text, "gres"), words)
            assert.equal("0:11:00", asked(text, "time"))
            assert.matches(" --device " .. expected[4] .. "\n", text, 1, true)
            assert.equal(text:find("--ranks", 1, true), nil)
            -- the context of a GPU is in the memory of its process
            local each = (tonumber(expected[2]) or 1) * 512
            assert.is_true(tonumber((asked(text, "mem"):gsub("M", ""))) > each)
            if expected[2] then -- one process has no such table (moonbeam --plan)
                local node = tonumber((run(D .. "--plan " .. words)):match "%-%-mem=(%d+)M")
                assert.is_true(math.abs(node - tonumber(asked(text, "mem"):match "%d+")) <= 16)
            end
        end
        local _, problem, status = run(D .. "--plan --ranks 4 --ranks-per-node 2 --tiles exact "
            .. "-d 2xplanned:h200")
        assert.equal(2, status)
        assert.matches("2 ranks on a node with 2 devices for each would all take the same", problem, 1,
            true)
    end)

    -- What a plan or a run says of tiles and memory.
    local function facts(text)
        return text:match "\ntiles [^\n]*" or text:match "\ngrid [^\n]*",
            text:match "\nmemory +peak [^\n]-%(%d+ bytes%)", text:match "\npinned [^\n]*"
    end

    it("does in a job what was planned", function()
        for i, words in ipairs {"--iterations auto --preview w.png", "--tiles exact --place file "
            .. "--acceleration biggs_andrews", "--tiles blended --tile 10,40,36",
            "--tiles exact -d host:1,host:2"} do
            local own = words .. (words:find "-d" and "" or " -d host")
            local plan = {facts((run(D .. "--plan " .. own)))}
            local text = script(own)
            files.write(folder .. "/job.sh", text)
            local function job()
                return files.run(("cd '%s'; SLURM_CPUS_PER_TASK=2 sh job.sh 2>&1"):format(folder))
            end
            local output, ok = job()
            assert.is_true(ok, output)
            if not words:find "auto" then -- there the noise says more than the plan knew
                assert.same(plan, {facts(output)})
            end
            local predicted, measured = output:match "\npredicted  peak [^\n]-%((%d+) bytes%)",
                output:match "\nmeasured   peak [^\n]-%((%d+) bytes%)"
            assert.equal(predicted or output:match "\nmemory [^\n]-%((%d+) bytes", measured, output)
            local made = files.read(folder .. "/v.npy")
            if i < 3 then -- as Slurm does where it starts a job again
                output, ok = job()
                assert.is_true(ok, output)
                assert.matches("v.npy is there: nothing to do", output, 1, true)
            end
            local _, problem = run(command_of(text):gsub("%-%-budget %d+", ""):gsub(
                "%-%-resume auto", "--overwrite"))
            assert(made == files.read(folder .. "/v.npy"), words .. problem)
            files.run(("cd '%s' && rm -rf v.npy w.png"):format(folder))
        end
    end)

    ranks.it("starts ranks, which do what was planned, with the bits of one process", function()
        local own = "--tiles exact --ranks 2 -d host"
        local text = script(own)
        assert.matches("exec srun --mpi=pmix --kill-on-bad-exit=1 --cpus-per-task=$SLURM_CPUS_PER_TASK "
            .. helper.program, text, 1, true)
        local plan, words = {facts((run(D .. "--plan " .. own)))}, command_of(text)
        local output, ok = files.run(("cd '%s'; %s"):format(folder, ranks.command(2, words)))
        assert.is_true(ok, output)
        assert.same(plan, {facts(output)})
        local count = 0
        for predicted, measured in output:gmatch
            "\nrank %d on %S+ host, predicted (%d+) bytes, measured (%d+) bytes" do
            assert.equal(predicted, measured)
            count = count + 1
        end
        assert.equal(2, count)
        local shared = files.read(folder .. "/v.npy")
        run("--no-mpi " .. words:gsub("auto", "auto --overwrite"):gsub("%-%-budget %d+", ""))
        assert(shared == files.read(folder .. "/v.npy"))
    end)

    it("works through a list of images", function()
        mb.system.mkdir(folder .. "/w")
        files.run(("cd '%s' && cp i.npy a.npy && cp i.npy b.npy"):format(folder))
        local text, problem, status = run("deconvolve a.npy b.npy --psf p.npy --into w --format npy -d "
            .. "host --iterations 2 --plan --slurm")
        assert.equal(0, status, problem)
        assert.matches("deconvolve a.npy b.npy %-%-psf p.npy .* %-%-tiles none %-%-budget %d+ %-%-resume auto",
            text)
        for _ = 1, 2 do
            run(command_of(text))
        end
        assert.matches("images     0 done, 2 skipped, 0 failed of 2", files.read(folder .. "/out"), 1, true)
        problem = select(2, run("deconvolve a.npy b.npy --psf p.npy --into w --format npy -d host "
            .. "--plan --slurm --overwrite"))
        assert.equal("", problem)
    end)

    it("warns of results that are there, and of ranks without tiles", function()
        files.write(folder .. "/v.npy", "")
        local _, problem = script "-d host"
        assert.matches("warning: 'v.npy' exists: the job finds it finished", problem, 1, true)
        assert.equal("", (select(2, script "-d host --overwrite")))
        os.remove(folder .. "/v.npy")
        mb.system.mkdir(folder .. "/v.npy.unfinished")
        files.write(folder .. "/v.npy.unfinished/journal", "no record\n")
        assert.matches("warning: 'v.npy.unfinished' exists: the job goes on with it", (select(2,
            script "-d host --tiles exact")), 1, true)
        files.run("rm -r '" .. folder .. "/v.npy.unfinished'")
        local text = run(D .. "--plan -d host --tiles exact --ranks 100")
        local idle = 100 - tonumber(text:match "; (%d+) tiles, taken when a rank is free")
        _, problem = script "-d host --tiles exact --ranks 100"
        assert.matches(("nothing to do for %d of 100 ranks"):format(idle), problem, 1, true)
        assert.equal("", (select(2, script "-d host --tiles exact --ranks 2")))
        assert.equal("", (select(2, script "-d host --ranks 1")))
    end)

    it("is refused before the job would be", function()
        for words, expected in pairs {
            ["deconvolve i.npy p.npy -d host --plan --slurm"] = "the name of the result is missing",
            ["deconvolve i.npy p.npy -o i.npy -d host --plan --slurm"] = "i.npy",
            ["deconvolve i.npy p.npy -o v.txt -d host --plan --slurm"] = "v.txt",
            [D .. "-d host --slurm"] = "--slurm needs --plan",
            [D .. "-d host --plan --slurm --discard"] = "leave --discard out",
            [D .. "-d host --plan --slurm --ranks 2"] = "the whole image fits, and there are 2 ranks",
            [D .. "-d host --plan --slurm -- --mem=10M"] = "less than what the plan takes",
        } do
            local text, problem, status = run(words)
            assert.is_true(status ~= 0, words)
            assert.matches(expected, problem, 1, true)
            assert.equal("", text)
        end
        files.write(folder .. "/w.png", "")
        local _, problem, status = run(D .. "-d host --plan --slurm --preview w.png")
        assert.is_true(status ~= 0)
        assert.matches("w.png", problem, 1, true)
    end)
end)
