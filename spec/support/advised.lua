-- Follows what messages advise: commands in a folder of files, each as a program of its own.
--
-- A row is {source, words, says, follows}: `source` is a part of the text in the sources (several
-- in a list), `words` the command line that provokes it, and `says` what it prints; `follows` has
-- the command lines that obey it, each without that message, and with status 0 unless `ends` says
-- otherwise. `before`: what is run first. `warns`: the first one ends with 0, too.

local assert = require "luassert"
local files = require "spec.support.files"
local frame_scans = require "spec.support.frame_scans"
local mb = require "moonbeam"

local advised = {}

local BIN <const> = os.getenv "MOONBEAM_BIN" or mb.system.program()

-- Runs a command line in a folder; what an earlier one has made is gone unless `stays`.
local function run(folder, words, stays)
    local command = words:find "^!" and words:sub(2) or ("'%s' %s"):format(BIN, words)
    local output, _, status = files.run(("export MOONBEAM_BIN='%s' MOONBEAM_SCRIPTS='%s/scripts'; "
        .. "cd '%s' && %s { %s; }"):format(BIN, mb.system.cwd(), folder, stays and "" or "rm -rf o o.* o-* p.png made.*;", command))
    return output, status
end

--- Follows the advice of a row in a folder.
function advised.follow(folder, row)
    for i, words in ipairs(row.before or {}) do
        run(folder, words, i > 1)
    end
    local output, status = run(folder, row.words, row.before)
    assert(output:find(row.says, 1, true), ("'%s' does not say '%s' but\n%s"):format(row.words,
        row.says, output))
    assert((status == 0) == (row.warns == true), ("'%s' ends with %s:\n%s"):format(row.words,
        status, output))
    for _, words in ipairs(row.follows) do
        for i, first in ipairs(row.before or {}) do
            run(folder, first, i > 1)
        end
        output, status = run(folder, words, row.before)
        assert(status == (row.ends or 0), ("'%s', which '%s' advises, ends with %s:\n%s"):format(
            words, row.says, status, output))
        assert(row.repeats or not output:find(row.says, 1, true), ("'%s' says again\n%s"):format(
            words, output))
    end
end

--- Declares a spec for each row. `prepare(folder)` makes the files.
function advised.specs(rows, prepare)
    local busted = require "busted"
    local folder
    busted.setup(function()
        folder = files.folder()
        prepare(folder)
    end)
    busted.teardown(function()
        files.remove(folder)
    end)
    for _, row in ipairs(rows) do
        busted.it("is followed: " .. row.words, function()
            advised.follow(folder, row)
        end)
    end
end

--- Scans of Data Exchange in a folder: {[name] = changes}.
function advised.scans(folder, changes)
    for name, each in pairs(changes) do
        frame_scans.write(("%s/%s.h5"):format(folder, name), each.nxtomo
            and (frame_scans.nxtomo(each.nxtomo)) or frame_scans.exchange(each))
    end
end

return advised
