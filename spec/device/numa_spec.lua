-- The processors near a device: made-up trees of /sys, and threads that run where they should.

local core = require "moonbeam.core"
local files = require "spec.support.files"
local helper = require "spec.helper"
local mb = require "moonbeam"

local PCI <const> = "0000:3B:00.0"

-- A tree with these files; names are below /sys.
local function tree(contents)
    local root = files.folder()
    for name, text in pairs(contents) do
        local path = root .. "/sys/" .. name
        assert(os.execute(("mkdir -p '%s'"):format(path:match "^(.*)/")))
        local file <close> = assert(io.open(path, "w"))
        file:write(text, "\n")
    end
    return root
end

local NODE_OF <const> = "bus/pci/devices/0000:3b:00.0/numa_node"

-- What is near PCI in a tree, as "node: processors", or "any".
local function near(contents, allowed, pci)
    local root = tree(contents)
    local node, processors = core.device.near(root, pci or PCI, allowed or "0-8191")
    files.remove(root)
    return node and ("%d: %s"):format(node, processors) or "any"
end

local function changed(contents, changes)
    local copy = {}
    for name, text in pairs(contents) do
        copy[name] = text
    end
    for name, text in pairs(changes) do
        copy[name] = text or nil
    end
    return copy
end

local TWO <const> = {
    [NODE_OF] = "1",
    ["devices/system/node/online"] = "0-1",
    ["devices/system/node/node0/cpulist"] = "0-15,32-47",
    ["devices/system/node/node1/cpulist"] = "16-31,48-63",
    ["devices/system/cpu/online"] = "0-63",
}

describe("the processors near a device", function()
    it("are those of its node", function()
        assert.equal("1: 16-31,48-63", near(TWO))
        assert.equal("0: 0-15,32-47", near(changed(TWO, {[NODE_OF] = "0"})))
        assert.equal("1: 16-31,48-63", near(TWO, nil, "00000000:3B:00.0"))
        assert.equal("1: 16-31,48-63", near(TWO, nil, "0000:3b:00.0"))
    end)

    it("are those of one of eight nodes, which need not be numbered without gaps", function()
        local eight = {[NODE_OF] = "6", ["devices/system/node/online"] = "0,2-8"}
        for node = 0, 8 do
            eight[("devices/system/node/node%d/cpulist"):format(node)] = ("%d-%d,%d"):format(node * 16,
                node * 16 + 14, 200 + node)
        end
        assert.equal("6: 96-110,206", near(eight))
        assert.equal("6: 100-105", near(eight, "90-91,100-105"))
    end)

    it("are those on which the process may run", function()
        assert.equal("1: 20-23", near(TWO, "0-3,20-23"))
        assert.equal("1: 31,48", near(TWO, "31-48"))
        assert.equal("any", near(TWO, "0-15")) -- its node is not for this process
        assert.equal("1: 63", near(TWO, "63"))
    end)

    it("are those that are online", function()
        assert.equal("1: 16-19,60-63", near(changed(TWO, {["devices/system/cpu/online"] = "0-19,60-63"})))
        assert.equal("any", near(changed(TWO, {["devices/system/cpu/online"] = "0-15"})))
        assert.equal("1: 16-31,48-63", near(changed(TWO, {["devices/system/cpu/online"] = false})))
    end)

    it("are any where the system does not say", function()
        assert.equal("any", near(changed(TWO, {[NODE_OF] = "-1"})))
        assert.equal("any", near(changed(TWO, {[NODE_OF] = false})))
        assert.equal("any", near(changed(TWO, {[NODE_OF] = "one"})))
        assert.equal("any", near(changed(TWO, {[NODE_OF] = "99999"})))
        assert.equal("any", near(changed(TWO, {["devices/system/node/online"] = false})))
        assert.equal("any", near(changed(TWO, {["devices/system/node/node1/cpulist"] = false})))
        assert.equal("any", near(changed(TWO, {["devices/system/node/node1/cpulist"] = ""})))
        for _, list in ipairs {"16-", "a", "5-3", "1,,2", "9000", "-1", "1 2"} do
            assert.equal("any", near(changed(TWO, {["devices/system/node/node1/cpulist"] = list})), list)
        end
        for _, pci in ipairs {"", "..", "../../..", "0000:ff:00.0", ("x"):rep(300)} do
            assert.equal("any", near(TWO, nil, pci))
        end
        assert.equal("any", near({}))
    end)

    it("are any where there is one node", function()
        assert.equal("any", near(changed(TWO, {["devices/system/node/online"] = "0", [NODE_OF] = "0"})))
    end)

    it("are facts of a device", function()
        local host = mb.device "host"
        assert.is_nil(host.node)
        assert.is_nil(host.processors)
        assert.is_nil(host.pci)
        assert.matches("did you mean 'processors'", (helper.failure(function() return host.processor end)))
    end)
end)

-- The processors on which each thread of this process may run: {text = count}.
local function threads()
    local seen = {}
    for name in io.popen("ls /proc/self/task 2>/dev/null; ls /proc/" .. mb.system.pid() .. "/task"):lines() do
        local file <close> = io.open(("/proc/%d/task/%s/status"):format(mb.system.pid(), name))
        local list = file and file:read("a"):match "Cpus_allowed_list:%s*(%S+)"
        if list then
            seen[list] = (seen[list] or 0) + 1
        end
    end
    return seen
end

describe("the threads of a carrier", function()
    it("run near its device, and no other thread does", function()
        local file <close> = assert(io.open "/proc/self/status")
        local allowed = file:read("a"):match "Cpus_allowed_list:%s*(%S+)"
        local one = allowed:match "^%d+"
        if allowed == one then
            return helper.skip "this process may run on one processor"
        end
        local before = threads()[one] or 0
        local root = tree(changed(TWO, {["devices/system/node/node1/cpulist"] = one,
            ["devices/system/cpu/online"] = allowed}))
        local device = mb.device "host:4"
        core.device.locate(device, root, PCI)
        assert.same({1, one}, {device.node, device.processors})
        local from <close> = mb.ones({4, 4}, {device = "host"})
        do
            local to <close> = mb.zeros({4, 4}, {device = device})
            local reader <close> = core.carrier.open {device = device, threads = 3, pinned = "1Mi"}
            reader:carry(from, to)
            reader:finish()
            assert.equal(16, to:sum())
            assert.equal(before + 3, threads()[one])
            local again <close> = assert(io.open "/proc/self/status")
            assert.equal(allowed, again:read("a"):match "Cpus_allowed_list:%s*(%S+)")
        end
        core.device.locate(device, "", "")
        files.remove(root)
        assert.is_nil(device.node)
        local to <close> = mb.zeros({4, 4}, {device = device})
        local reader <close> = core.carrier.open {device = device, threads = 3, pinned = "1Mi"}
        reader:carry(from, to)
        reader:finish()
        assert.equal(before, threads()[one] or 0)
    end)
end)
