-- Texts that advise an option and that no row follows: {reason = {parts of the texts}}. A reason may
-- name the spec that provokes the text.
return {
    ["an option of the library, or a description; nobody is told to type it"] = {
        "  -h, --help", "%s (--help lists the options)", "The center of rotation: mb.tomo.find_center",
        "mb.pad makes an array larger", "mb.pad has the mode \"wrap\"",
        "A recipe is a list of steps", "the option range of the step center is the same",
        "the option device", "scripts/record_fft_sizes.lua --name NAME",
        "'%s COMMAND --help' shows the options", "give the name of a Lua script or of a command",
        "the option discard = true removes: give one of them", "; or a list, as for --vertical-shifts",
    },
    ["budgets: spec/pipelines/budget_again_spec.lua"] = {
        "leave --mask out", " (--tiles exact)",
        "and the option mode = %s, which needs", "smaller chunks need less (leave --chunk out",
        ", or leave --chunk out", "give more by the option host_budget, or %s", "what to give a batch system, as in Slurm's --mem",
        "the processes at most %s: --mem=%dM",
        "go on with the option tiff_layout",
    },
    ["limits of the process: spec/memory/process_limit_spec.lua"] = {
        "which leaves too little to plan the work: raise",
    },
    ["words of a command for what the library says; their messages have rows"] = {
        "--set flat_field.mode=median", "--set flat_field.interpolation=linear",
        "--set flat_field.interpolation=mean", "--set center.column=%1", "the option current and ",
        "the option flats_current", "the step %s of a recipe (--recipe FILE)",
        "reconstruct --plan of one scan", "--into and --format say where results go",
        "write --set %s=%s", "the option flat_interpolation = \"linear\"", ": name the angles with",
        ", in '%s': give the option image_key", "model      %s: %s (--model)",
        "px hold %s: --psf-size %d holds more", "(--center)", "; or, where they are slices, --axes Z",
    },
    ["a remark of an import beside what it has written: spec/scripts/command_line/import_recipe_spec.lua"]
        = {"regularisation_parameter = %g is on another scale", "give --flats-path and --darks-path",
        "from the scan; here it is given: --set", "give --set %s.delta_beta=N", "give --angles-path",
        "give --rows FIRST:LAST"},
    ["noise of large images: spec/deconv/deconvolve_noise_spec.lua"] = {
        "; not applied (--gain auto --offset auto)", "iterations are made; give %sa number",
        "but that is the most (--iterations)", "the noise is being fitted; fewer iterations",
        "are not photons: its noise says", "its counts are not photons (--gain auto",
        "they may show: --tiles exact, or fewer iterations",
    },
    ["measured PSFs: spec/deconv/measured_files_spec.lua"] = {
        "its background was subtracted too far (psf.subtract", "is below 0: it was subtracted too far, and",
        "would cut the PSFs of several wavelengths to boxes",
    },
    ["beads: spec/deconv/psf/bead_psf_spec.lua"] = {
        "and a PSF is of one: give --channel", "; where the planes are slices, --axes Z says so",
    },
    ["kernels of a convolution: spec/deconv/convolve_files_spec.lua"] = {
        "and it cannot be divided by such a sum: the option normalize = false",
        "and this image has one axis: give a measured PSF",
    },
    ["one volume of several: spec/deconv/gate_files_spec.lua"] = {
        "--channel and --frame work on one volume alone",
    },
    ["arguments of functions: spec/bindings/wrong_arguments_spec.lua"] = {
        "sink is missing; give a result",
    },
    ["tiles that end again: spec/deconv/tile_resume_spec.lua"] = {
        "with these values it ends again; remove it with",
    },
    ["images: spec/scripts/deconvolve_spec.lua"] = {
        "a microscope's is from 1 nm to 0.1 mm", "OME-Zarr results are stacks (z, y, x), and this",
        "--tiles blended adds up in the result", "alone: several devices share tiles",
        "on %s alone where there are no tiles",
    },
    ["a run whose journal has a beginning alone: spec/deconv/image_list_spec.lua"] = {
        "and the whole image fits: leave --resume out",
    },
    ["a result of another file on disk, with paths: spec/pipelines/chain_spec.lua"] = {
        "or trust them with --trust-paths",
    },
    ["said when a run is stopped; the options have rows: spec/pipelines/resume_spec.lua"] = {
        "keeps %d of %d rows: go on with the option resume",
    },
    ["arrays in memory, which no command has: spec/cluster/part_join_spec.lua"] = {
        "the option resume = true needs a scan from a file",
    },
    ["several nodes: spec/cluster/ranks_spec.lua"] = {
        "cannot write the same file of a network file system",
    },
    ["above 4 GB: spec/files/tiff_shown_spec.lua"] = {
        "for files with ImageJ's text, and this one has OME-XML", "; --tiff-layout imagej is for ImageJ",
        "the option tiff_layout is for TIFF files",
    },
    ["scans that are written meanwhile: spec/files/growing_scan_spec.lua"] = {
        "the option wait = SECONDS waits for it", "the option wait = SECONDS waits for them",
    },
    ["angles: spec/tomo/scan_angles_spec.lua"] = {
        "are they in radians? Give the option angle_unit", "angles given as numbers need the option",
        "overrides the unit '%s' of", "' is not a number: give the option angles",
        "' is 0: give the option angles", "the file is incomplete; give the option angles",
    },
    ["ids of frames: spec/tomo/scan_ids_spec.lua"] = {
        "if ids count from 0, the first frame was lost", "if frames were lost, name the angles",
    },
    ["layouts of files: spec/scan/scan_layouts_spec.lua"] = {
        "has several detectors (%s, %s): name one", "with the option entry", "the option entry selects "
        .. "another", "without frames in a detector: name them",
        "the option image_key is taken for all frames",
    },
    ["axes of datasets: spec/scan/scan_axes_spec.lua"] = {
        "does not say the order of its axes", "is taken; by its attribute", "give the option axes",
        "the option allow_missing leaves them out",
    },
    ["odd values: spec/tomo/odd_values_spec.lua"] = {
        "the option counts_as = '%s' reads them so", "the counts have an offset; name darks",
        "the option darks_file ('%d') takes it out", "('NUMBER,...') leaves those out",
        "the air at both edges has a transmission of", "of the transmissions are below 0, down",
        "of the transmissions are above %g", "nothing has come through. If the frames are",
        "the option bad_projections ('%s')", "if the detector was saturated instead",
        "where one flat is not, the projections count",
    },
    ["shapes of flats: spec/scan/flat_shapes_spec.lua"] = {"the option flat_positions ("},
    ["what files say: spec/scan/statements_spec.lua"] = {
        "um, and the file says %s: the former is taken", "the former is taken; the option pixel_size",
        "says whether it is a half acquisition", "the option flip says how the frames",
        "and the recipe has neither step half_acquisition", "undoes it (--vertical-shifts=-",
        ": --center %.2f takes it",
    },
    ["series of files: spec/files/image_series_spec.lua"] = {
        "name the projections by a pattern, such as", "the option allow_missing pairs files and angles",
    },
    ["exposures and currents: spec/tomo/scan_exposures_spec.lua"] = {
        "says how flats were exposed", "if the dark current matters, name other darks",
        "and '%s' says %.6g: the former is taken", "the option current gives another one",
    },
    ["links out of a folder: spec/files/h5/hostile_h5_spec.lua"] = {
        "if you trust the file, give the option allow_external",
    },
    ["advice about the axis, --center X, which has rows: spec/tomo/axis/axis_chains_spec.lua"] = {
        "and may lie beyond it; give center.guess", "is ambiguous: another column is nearly as good",
        "shows no axis: it may be anywhere", "have spread over what %s looks at",
        "is within a pixel of a column that is dead or stuck", "two ways to find the axis differ by",
        "try --half-acquisition", "give --center", "steps before the search, and what they made",
        "half a turn apart; give the column of the axis",
    },
    ["the direct methods in the library: spec/tomo/method_spec.lua"] = {
        "leave the method to \"auto\", or the option",
    },
    ["a warning beside a result: spec/scripts/reconstruct_spec.lua"] = {
        "--output-range is so wide that the values",
    },
    ["launchers and devices: spec/cluster/cluster_spec.lua"] = {
        "without a PMI, by which MPI finds",
        "start it without mpirun",
    },
    ["volumes of one scan: spec/scripts/command_line/stitch_spec.lua"] = {
        "give --step UM if that is wrong", "or --overlap N or --heights",
        "slices in common, more than the %d there are; give", "--by correlation takes the latter",
        "leave out --lateral auto and --intensity auto", "--lateral auto moves the second",
        "--intensity auto makes them those of the first",
    },
}
