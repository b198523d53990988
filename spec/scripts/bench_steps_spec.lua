-- scripts/bench.lua steps runs the operators of all families. Times are printed, not judged.

local helper = require "spec.helper"

describe("bench.lua steps", function()
    it("has a row for each operator that it times", function()
        local output, status = helper.run_program(
            "scripts/bench.lua steps --no-peers -n 64 -a 60 -s 4 --repeats 1")
        assert.equal(0, status, output)
        for _, row in ipairs {
            "minus_log, a sinogram",
            "stripes, Titarenko, a sinogram",
            "stripes, Raven, a sinogram",
            "stripes, filtered mean, a sinogram",
            "stripes, wavelet as tomocupy, a sinogram",
            "polynomial, a sinogram",
            "circular_mask, a slice",
            "stripes_sorting, window 11, a sinogram",
            "stripes_large, a sinogram",
            "stripes_dead, a sinogram",
            "stripes_all, a sinogram",
            "Paganin, a frame",
            "total_variation, 2-D, a slice and iteration",
            "total_variation, 3-D, a slice and iteration",
            "bilateral_filter, 2-D, a slice",
            "CTF, a frame",
            "double_wedge, a trial",
            "find_center_vo, a", "overlap_metric, a side",
            "flat_field, a sinogram",
            "eigen_flat_field of 8 images, a frame",
            "gram_matrix, a frame",
            "normalize_background, a sinogram",
            "mean_projection of transmissions, a sinogram",
            "flat_field between two groups with currents, a sinogram",
            "undistort, a frame",
            "undistort splines, a frame",
            "rotate, a frame",
            "resample linear, a frame",
            "horizontal_shift, a frame",
            "bin 2 x 2, a frame",
            "stitch_turn, a frame",
            "dezinger 3x3x3, a frame",
            "median 5x5x5, a frame",
            "mend, a frame",
        } do
            assert.is_truthy(output:find("| " .. row, 1, true), output)
        end
    end)
end)
