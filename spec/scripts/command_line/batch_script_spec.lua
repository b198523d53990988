-- The script for Slurm that --slurm prints: what the user and the site add, folder, program, memory
-- and device (command_line/batch_script.lua). scripts/slurm_trial runs such scripts under Slurm.

local files = require "spec.support.files"
local helper = require "spec.helper"
local mb = require "moonbeam"

describe("a script for Slurm", function()
    local folder

    -- The command in the folder: its standard output, standard error and status.
    local function run(words, before, from)
        local _, _, status = files.run(("cd '%s'; (%s '%s' reconstruct %s > out 2> err)"):format(from
            or folder, before or "", helper.program, words))
        local own = from or folder
        return files.read(own .. "/out"), files.read(own .. "/err"), status
    end

    -- The script of a plan of one process on the host; `more` words, those behind --.
    local function script(more, behind, before, from)
        local text, problem, status = run(("s.h5 -c 11.5 -o v.h5 --plan --slurm %s -- %s"):format(
            more or "-d host", behind or ""), before, from)
        assert.equal(0, status, problem)
        assert.equal("", (files.run("sh -n -c '" .. text:gsub("'", "'\\''") .. "'")))
        return text, problem
    end

    local function lines_of(text, pattern)
        local list = {}
        for line in text:gmatch "[^\n]+" do
            list[#list + 1] = line:find(pattern) and line or nil
        end
        return list
    end

    setup(function()
        folder = files.folder()
        files.run(("cd '%s' && '%s' simulate s.h5 --size 24 --rows 8 --angles 30 -d host -q"):format(
            folder, helper.program))
    end)
    teardown(function()
        files.remove(folder)
    end)

    it("asks for what one process takes, and is the program itself", function()
        local text = script()
        local plan = run "s.h5 -c 11.5 -o v.h5 --plan -d host"
        local memory = tonumber(text:match "\n#SBATCH %-%-mem=(%d+)M\n")
        -- Two processes differ by some pages, which may lie at a step of 16 MiB.
        assert.is_true(math.abs(memory - tonumber(plan:match "%-%-mem=(%d+)M")) <= 16)
        assert.equal(0, memory % 16)
        assert.same({"#!/bin/sh", "#SBATCH --nodes=1", "#SBATCH --ntasks=1",
            "#SBATCH --cpus-per-task=" .. mb.system.processors(), ("#SBATCH --mem=%dM"):format(memory),
            "#SBATCH --chdir=" .. folder,
            "# no --time: how fast the processors of a host are is not known; sbatch "
                .. "--time=H:MM:SS gives one",
            "# Submitted again, it goes on where it was ended (scancel, a limit, a node).",
            "export OMP_NUM_THREADS=$SLURM_CPUS_PER_TASK",
            "exec " .. helper.program .. " reconstruct s.h5 -c 11.5 -o v.h5 --resume auto --device host"},
            lines_of(text, ""))
    end)

    it("names the device of the plan, whatever was typed", function()
        for words, device in pairs {[""] = "host", ["-d auto"] = "host", ["--device=host"] = "host",
            ["-d planned:h200"] = "cuda:0", ["-d 2xplanned:h200"] = "all",
            ["-d planned:h200 --ranks 4 --ranks-per-node 2"] = "cuda",
            ["-d planned:h200 --ranks 4"] = "cuda:0", ["--ranks 2"] = "host"} do
            local text = script(words)
            assert.matches("--device " .. device .. "$", text:gsub("%s+$", ""))
            assert.equal(1, select(2, text:gsub("%-%-device", "")))
        end
        local text = files.run(("cd '%s'; '%s' --device planned:h200 --budget 2G reconstruct s.h5 -c "
            .. "11.5 --plan --slurm"):format(folder, helper.program))
        assert.matches("/%S* %-%-budget=2G reconstruct s.h5 %-c 11.5 %-%-resume auto %-%-device cuda:0",
            text)
    end)

    it("is not needed to know the device: each report names it", function()
        files.write(folder .. "/f.lua", '{"flat_field", "minus_log", {"fbp", center = 11.5}}')
        for _, words in ipairs {"s.h5 -c 11.5 -o t.h5", "s.h5 --recipe f.lua -o t.h5"} do
            assert.matches("\ndevice     host %([^\n]+%)\n", (run(words .. " -d host --overwrite")))
        end
        files.run(("cd '%s'; '%s' psf -o q.tif --na 0.5 --index 1 --wavelength 500 --pixel 200 "
            .. "--step 500 --size 3,5,5 -d host -q"):format(folder, helper.program))
        assert.matches("\ndevice     host %([^\n]+%)\n", (files.run(("cd '%s'; '%s' deconvolve q.tif "
            .. "q.tif --plan -d host"):format(folder, helper.program):gsub("q.tif q.tif", "q.tif r.tif")
            :gsub("^", ("cp '%s/q.tif' '%s/r.tif'; "):format(folder, folder)))))
    end)

    it("has what the user asks sbatch for, in the place of its own", function()
        local text = script("-d planned:h200", "-p gpu --account lab --mail-type=END,FAIL --time=5 -c4 "
            .. "--job-name 'two words' --exclusive --mem=2G --comment='a \"b\" #c'")
        assert.same({"#SBATCH --nodes=1", "#SBATCH --ntasks=1", "#SBATCH --gres=gpu:1",
            "#SBATCH --chdir=" .. folder, "#SBATCH --partition=gpu", "#SBATCH --account=lab",
            "#SBATCH --mail-type=END,FAIL", "#SBATCH --time=5", "#SBATCH --cpus-per-task=4",
            '#SBATCH --job-name="two words"', "#SBATCH --exclusive", "#SBATCH --mem=2G",
            '#SBATCH --comment="a \\"b\\" #c"'}, lines_of(text, "^#SBATCH"))
        assert.matches("exec srun --mpi=pmi2 --kill-on-bad-exit=1 --cpus-per-task=$SLURM_CPUS_PER_TASK "
            .. "apptainer exec --nv m.sif moonbeam reconstruct s.h5", script("-d host --ranks 2",
            "--mpi=pmi2 --prefix='apptainer exec --nv m.sif' --program moonbeam"), 1, true)
    end)

    it("has the lines of the site, which the user's win over", function()
        files.write(folder .. "/site", "#!/bin/sh\n#SBATCH -p cpu --account='big lab' # ours\n"
            .. "module load openmpi\n#SBATCH --mpi=pmi2\nexport A=1\n")
        local text = script("-d host --ranks 2", "-p gpu", "MOONBEAM_SLURM=site")
        assert.same({'#SBATCH --account="big lab"', "#SBATCH --partition=gpu"}, lines_of(text,
            "^#SBATCH %-%-[ap][ca][cr]"))
        assert.matches("\nmodule load openmpi\nexport A=1\nexport OMP_NUM_THREADS", text, 1, true)
        assert.matches("exec srun --mpi=pmi2 ", text, 1, true)
        local _, problem, status = run("s.h5 -c 11.5 --plan --slurm", "MOONBEAM_SLURM=nowhere")
        assert.equal(2, status)
        assert.matches("MOONBEAM_SLURM names .*nowhere", problem)
    end)

    it("refuses what it cannot do", function()
        for behind, expected in pairs {["--mem=10M"] = "less than what the plan takes, %d+M",
            ["--nodes=2"] = "%-%-nodes behind %-%- is what %-%-ranks says",
            ["-n 4"] = "%-%-ntasks behind %-%- is what %-%-ranks says",
            ["--array=1-3"] = "%-%-array behind %-%- is what %-%-part or .* leave it out, or say how",
            ["-a %0"] = "%-%-array behind %-%- is what %-%-part or",
            ["--array=%4"] = "%-%-array=%%4 says .* this is none: give %-%-part",
            ["gpu"] = "'gpu' behind %-%- is no option of sbatch"} do
            local text, problem, status = run("s.h5 -c 11.5 --plan --slurm -d host -- " .. behind)
            assert.equal(2, status, behind)
            assert.matches(expected, problem)
            assert.equal("", text)
        end
        local _, problem, status = run "s.h5 --plan --slurm --discard"
        assert.equal(2, status)
        assert.matches("leave %-%-discard out", problem)
    end)

    it("warns of results that are there, and of ranks without work", function()
        assert.equal("", select(2, script()))
        files.write(folder .. "/v.h5", "")
        files.write(folder .. "/v-part-2-of-3.h5", "")
        assert.matches("warning: 'v.h5' exists: the job finds it finished", (select(2, script())), 1, true)
        assert.matches("warning: 'v-part-2-of-3.h5' exists", (select(2, script "-d host --part 1/3")), 1,
            true)
        assert.equal("", (select(2, script "-d host --overwrite")))
        os.remove(folder .. "/v.h5")
        mb.system.mkdir(folder .. "/v.h5.unfinished")
        files.write(folder .. "/v.h5.unfinished/journal", "no record\n")
        assert.matches("warning: 'v.h5.unfinished' exists: the job goes on", (select(2, script())), 1,
            true)
        files.run("rm -r '" .. folder .. "/v.h5.unfinished'")
        assert.matches("nothing to do for 96 of 100 ranks", (select(2, script "-d host --ranks 100")), 1,
            true)
    end)

    it("is not made where the job would be refused, by the names that it writes", function()
        files.write(folder .. "/p.png", "")
        files.write(folder .. "/r.lua", '{"flat_field", "minus_log", {"fbp", center = 11.5}}')
        for _, recipe in ipairs {"-c 11.5", "--recipe r.lua"} do
            for words, expected in pairs {["-o v.h5 -p p.png"] = "--preview p.png already exists",
                ["-o s.h5"] = "--output s.h5 is a file that is read"} do
                local text, problem, status = run(("s.h5 %s %s -d host --plan --slurm"):format(recipe,
                    words))
                assert.is_true(status ~= 0)
                assert.matches(expected, problem, 1, true)
                assert.equal("", text)
            end
        end
        mb.system.mkdir(folder .. "/v.h5.unfinished") -- a job goes on, and replaces the picture
        files.write(folder .. "/v.h5.unfinished/journal", "no record\n")
        assert.matches("goes on with it", (select(2, script "-d host -p p.png")), 1, true)
        files.run("cd '" .. folder .. "'; rm -r v.h5.unfinished p.png")
    end)

    it("asks for the processors that OMP_NUM_THREADS gives the plan", function()
        assert.matches("\n#SBATCH --cpus-per-task=5\n", (script(nil, nil, "OMP_NUM_THREADS=5")), 1, true)
        assert.matches("\n#SBATCH --cpus-per-task=8\n", (script("-d planned:h200", nil,
            "OMP_NUM_THREADS=5")), 1, true)
    end)

    it("goes to folders with names of any kind", function()
        for _, name in ipairs {"it's \"a\" $HOME \\ #1", "a\nb"} do
            local own = folder .. "/" .. name
            mb.system.mkdir(own)
            files.run(("cp '%s/s.h5' '%s'"):format(folder, (own:gsub("'", "'\\''"))))
            local text = select(1, files.run(("cd '%s'; '%s' reconstruct s.h5 -c 11.5 --plan --slurm -d "
                .. "host"):format(own:gsub("'", "'\\''"), helper.program)))
            if name:find "\n" then
                assert.is_nil(text:find("--chdir", 1, true))
                assert.matches("\ncd '" .. own .. "' || exit\n", text, 1, true)
            else
                assert.matches('\n#SBATCH --chdir="' .. folder .. "/it's \\\"a\\\" $HOME \\\\ #1\"\n", text,
                    1, true)
            end
        end
    end)

    it("keeps a program that the shell has found, and the name of a folder that is a link", function()
        files.run(("cd '%s'; ln -s . link; ln -s '%s' moonbeam"):format(folder, helper.program))
        local lua = mb.system.cwd() .. "/bindings"
        local text = files.run(("cd '%s/link'; export PWD='%s/link'; PATH=.:$PATH MOONBEAM_LUA='%s' "
            .. "moonbeam reconstruct s.h5 -c 11.5 --plan --slurm -d host"):format(folder, folder, lua))
        assert.matches("\n#SBATCH --chdir=" .. folder .. "/link\n", text, 1, true)
        assert.matches("\nexec moonbeam reconstruct", text, 1, true)
        text = files.run(("cd '%s'; MOONBEAM_LUA='%s' ./moonbeam reconstruct s.h5 -c 11.5 --plan --slurm "
            .. "-d host"):format(folder, lua))
        assert.matches("\nexec " .. folder .. "/moonbeam reconstruct", text, 1, true)
    end)

    it("says how the parts of an array are joined, in a job after it", function()
        local text = script("-d host --part 1/3", "-p gpu --prefix='nice -n 1'")
        local memory, words = text:match("\n# sbatch %-%-dependency=afterany:NUMBER %-%-ntasks=1 "
            .. "%-%-mem=(%d+)M %-%-chdir=%S+ %-%-partition=gpu %-%-wrap=([^\n]+)\n")
        assert.equal("'nice -n 1 " .. helper.program .. " join v-part-*-of-3.h5 -o v.h5 --resume auto'",
            words)
        files.run(("cd '%s'; rm -f v-part*; for k in 1 2 3; do '%s' reconstruct s.h5 -c 11.5 -o v.h5 -d "
            .. "host -q --part $k/3; done"):format(folder, helper.program))
        local plan = files.run(("cd '%s'; '%s' join v-part-*-of-3.h5 -o v.h5 --plan"):format(folder,
            helper.program))
        assert.is_true(tonumber(plan:match "%-%-mem=(%d+)M") <= tonumber(memory), plan)
        for _, expected in ipairs {"\nwrote      v.h5\n", "^finished   v.h5 is there"} do
            local output, ok = files.run(("cd '%s'; sh -c %s"):format(folder, words))
            assert.is_true(ok, output)
            assert.matches(expected, output)
        end
        assert.is_nil(script():find("afterany", 1, true))
        files.run(("rm -f '%s'/v*.h5"):format(folder))
    end)

    it("limits how many tasks of an array work at a time", function()
        for _, behind in ipairs {"--array=%2", "-a %2", "--array %2"} do
            assert.same({"#SBATCH --array=1-3%2"}, lines_of(script("-d host --part 1/3", behind), "array"))
        end
    end)

    it("asks for a disk of the node where scratch is on one", function()
        files.write(folder .. "/r.lua", '{"flat_field", "minus_log", {"fbp", center = 11.5}, '
            .. '{"rescale", dtype = "uint8", percentiles = {1, 99}}}')
        local words = "s.h5 --recipe r.lua --host-budget 0 --plan --slurm -d host --scratch "
        assert.matches("\n#SBATCH %-%-tmp=%d+M\n", (run(words .. "/tmp")))
        assert.is_nil((run(words .. "/dev/shm")):find("--tmp", 1, true))
    end)
end)
