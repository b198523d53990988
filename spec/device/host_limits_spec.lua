-- The limits of a batch job, a container or a shell: control groups (read from made-up trees) and
-- ulimit.

local mb = require "moonbeam"
local helper = require "spec.helper"

local MIB = 1 << 20

describe("limits of control groups", function()
    local root

    before_each(function()
        root = os.tmpname()
        os.remove(root)
        assert(mb.system.mkdir(root))
    end)
    after_each(function()
        os.execute("rm -rf '" .. root .. "'")
    end)

    local function write(path, text)
        assert(mb.system.mkdir((root .. path):match("^(.*)/")))
        local f <close> = assert(io.open(root .. path, "w"))
        f:write(text, "\n")
    end

    local function group(folder, files)
        for name, value in pairs(files) do
            write("/sys/fs/cgroup" .. folder .. "/" .. name, tostring(value))
        end
    end

    it("bind from the process's own group up to the root (version 2)", function()
        local job = "/system.slice/slurmstepd.scope/job_1"
        write("/proc/self/cgroup", "0::" .. job .. "/step_0/user/task_0")
        group("", { ["memory.stat"] = "inactive_file 0" }) -- the root has no limit
        group("/system.slice", { ["memory.max"] = "max", ["memory.current"] = 9000 * MIB })
        group(job, { ["memory.max"] = 4000 * MIB, ["memory.high"] = "max",
            ["memory.current"] = 1000 * MIB,
            ["memory.stat"] = "anon 5\ninactive_file 0\nactive_file 0" })
        group(job .. "/step_0", { ["memory.max"] = 3500 * MIB, ["memory.high"] = "max",
            ["memory.current"] = 100 * MIB })
        assert.same({ most = 3500 * MIB, left = 3000 * MIB, name = "/sys/fs/cgroup" .. job
            .. "/memory.max" },
            mb.system.memory_limits(root))
        -- above it the group is slowed down
        group(job .. "/step_0", { ["memory.high"] = 1100 * MIB })
        assert.same({ most = 1100 * MIB, left = 1000 * MIB,
            name = "/sys/fs/cgroup" .. job .. "/step_0/memory.high" },
                mb.system.memory_limits(root))
    end)

    it("do not count page cache as used", function()
        write("/proc/self/cgroup", "0::/job")
        group("/job", { ["memory.max"] = 1000 * MIB, ["memory.current"] = 990 * MIB,
            ["memory.stat"] =
            ("anon 1\ninactive_file %d\nactive_file %d\nslab 3"):format(600 * MIB, 300 * MIB) })
        assert.equal(910 * MIB, mb.system.memory_limits(root).left)
        write("/proc/self/cgroup", "5:memory:/job")
        group("/memory/job", { ["memory.limit_in_bytes"] = 1000 * MIB,
            ["memory.usage_in_bytes"] = 990 * MIB,
            ["memory.stat"] = ("inactive_file 7\ntotal_inactive_file %d\ntotal_active_file %d")
                :format(600 * MIB, 300 * MIB) })
        assert.equal(910 * MIB, mb.system.memory_limits(root).left)
    end)

    it("bind in version 1, whichever controllers share the tree", function()
        write("/proc/self/cgroup",
            "12:pids:/a\n4:cpuset,memory:/slurm/uid_7/job_9/step_batch\n1:name=systemd:/b")
        group("/memory", { ["memory.limit_in_bytes"] = "9223372036854771712",
            ["memory.usage_in_bytes"] = 5 })
        group("/memory/slurm/uid_7/job_9", { ["memory.limit_in_bytes"] = 2000 * MIB,
            ["memory.usage_in_bytes"] = 500 * MIB })
        group("/memory/slurm/uid_7/job_9/step_batch",
            { ["memory.limit_in_bytes"] = "9223372036854771712" })
        -- not ours
        group("/memory/a", { ["memory.limit_in_bytes"] = 1, ["memory.usage_in_bytes"] = 1 })
        assert.same({ most = 2000 * MIB, left = 1500 * MIB,
            name = "/sys/fs/cgroup/memory/slurm/uid_7/job_9/memory.limit_in_bytes" },
            mb.system.memory_limits(root))
    end)

    it("of memory with swap bind, too (version 1)", function()
        write("/proc/self/cgroup", "4:memory:/job")
        group("/memory/job", { ["memory.limit_in_bytes"] = 2000 * MIB,
            ["memory.usage_in_bytes"] = 500 * MIB, ["memory.memsw.limit_in_bytes"] = 2100 * MIB,
            ["memory.memsw.usage_in_bytes"] = 1000 * MIB })
        assert.same({ most = 2000 * MIB, left = 1100 * MIB,
            name = "/sys/fs/cgroup/memory/job/memory.memsw.limit_in_bytes" },
            mb.system.memory_limits(root))
    end)

    it("are those of the root where a container hides the path, and the smaller of both versions",
        function()
        write("/proc/self/cgroup", "3:memory:/docker/0123\n0::/../../elsewhere")
        group("/memory", { ["memory.limit_in_bytes"] = 800 * MIB,
            ["memory.usage_in_bytes"] = 900 * MIB })
        assert.same({ most = 800 * MIB, left = 0,
            name = "/sys/fs/cgroup/memory/memory.limit_in_bytes" },
            mb.system.memory_limits(root))
        group("/unified", { ["memory.max"] = 700 * MIB, ["memory.current"] = 0 })
        assert.equal(700 * MIB, mb.system.memory_limits(root).most)
    end)

    it("are none where there is no group, no limit, or nothing that can be read", function()
        assert.is_nil(mb.system.memory_limits(root))
        write("/proc/self/cgroup", "0::/job\n\nrubbish\n7:memory")
        assert.is_nil(mb.system.memory_limits(root))
        group("/job", { ["memory.max"] = "max", ["memory.high"] = "max", ["memory.current"] = 7 })
        assert.is_nil(mb.system.memory_limits(root))
    end)
end)

describe("a limit of the shell", function()
    -- AddressSanitizer reserves terabytes of addresses, so that its programs start under no such
    -- limit.
    local sanitized = helper.program:match("/sanitize/") ~= nil
    local script = [[-e '
        local mb = require "moonbeam"
        local budget, limits = mb.device("host"):budget(), mb.system.memory_limits()
        local a <close> = mb.random({ 64, 90, 128 })
        local b <close> = a * a
        print(budget, mb.pool.stats().reserved, limits.most, limits.name, b:sum() > 0)']]

    local function run(limit, options)
        local output, status = helper.run_program(options .. " " .. script, "",
            "ulimit " .. limit .. "; OMP_NUM_THREADS=4 " .. helper.program)
        assert.equal(0, status, output)
        local budget, reserved, most, name = output:match("^(%d+)\t(%d+)\t(%d+)\t(.-)\ttrue\n$")
        assert.truthy(budget, output)
        return tonumber(budget), tonumber(reserved), tonumber(most), name
    end

    for _, kib in ipairs { 20000000, 4000000, 500000 } do
        it(("of address space, %d KiB, leaves room for a pool and the rest of the process"):format(
            kib), function()
            if sanitized then
                pending("a sanitized program does not start under ulimit -v")
                return
            end
            local limit = kib * 1024
            local budget, reserved, most, name = run("-v " .. kib, "")
            assert.equal(limit, most)
            assert.equal("RLIMIT_AS (ulimit -v)", name)
            assert.truthy(budget > limit // 4 or budget > mb.device("host").total // 2, budget)
            assert.truthy(budget <= limit - 128 * MIB, budget)
            assert.truthy(reserved >= budget and reserved <= limit - 128 * MIB, reserved)
            -- as before the limit was looked at: nothing started
            budget = run("-v " .. kib, "--budget 64M")
            assert.equal(64000000, budget)
        end)
    end

    it("of data (ulimit -d) bounds the default budget", function()
        if sanitized then
            pending("a sanitized program's own data are terabytes")
            return
        end
        local budget, _, most, name = run("-d 1000000", "")
        assert.equal(1024000000, most)
        assert.equal("RLIMIT_DATA (ulimit -d)", name)
        assert.truthy(budget < 1024000000 - 96 * MIB and budget > 256 * MIB, budget)
    end)

    it("that leaves no room at all is told in one line with the remedy", function()
        if sanitized then
            pending("a sanitized program does not start under ulimit -v")
            return
        end
        -- With a pool there already, there is too little for one more of the same.
        local output, status = helper.run_program([[--budget 64M -e '
            local mb = require "moonbeam"
            print(mb.device("host", { budget = "900G" }))']], "", "ulimit -v 4000000; " .. helper.program)
        assert.equal(1, status)
        assert.matches("a budget of 900 GB exceeds the pool's address range of "
            .. "[%d.]+ GB", output)
        assert.matches("ulimit %-v", output)
    end)
end)
