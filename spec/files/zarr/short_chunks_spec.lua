-- Chunks of Zarr whose bytes are not all there: the message says where they are and how many there
-- are, and not that a checksum may be wrong.

local files = require "spec.support.files"
local helper = require "spec.helper"
local mb = require "moonbeam"

describe("a chunk of Zarr that is not all there", function()
    local folder

    before_each(function()
        folder = files.folder()
        os.execute(("mkdir '%s/a.zarr'"):format(folder))
        files.write(folder .. "/a.zarr/.zarray", [[{"zarr_format": 2, "shape": [4, 5, 6],
            "chunks": [4, 5, 6], "dtype": "<u2", "compressor": null, "fill_value": 0, "order": "C",
            "filters": null}]])
    end)

    after_each(function()
        files.remove(folder)
    end)

    it("is said with its bytes", function()
        files.write(folder .. "/a.zarr/0.0.0", ("\1\0"):rep(100))
        local text = helper.failure(mb.images.read, folder .. "/a.zarr")
        assert.matches("200 bytes", text, 1, true)
        assert.matches("240", text, 1, true)
        assert.not_matches("checksum", text, 1, true)
    end)
end)
