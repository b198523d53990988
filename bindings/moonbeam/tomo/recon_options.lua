--- The options of mb.recon: those of the methods, and those of a run in chunks.

local angle_weights = require "moonbeam.tomo.angle_weights"
local declared = require "moonbeam.internal.declared"
local iterative = require "moonbeam.pipeline.iterative"
local method_options = require "moonbeam.tomo.method_options"
local methods = require "moonbeam.tomo.method"
local timeline = require "moonbeam.scan.timeline"

return declared.options(
    {"device", "any", "where the work is done", usual = "host"},
    {"devices", "any", "several devices, as for mb.device.several", usual = "the option device"},
    {"available", "any", "bytes that it may take", unit = "bytes",
        usual = "what the budget leaves"},
    {"chunk", "any", "rows at a time", usual = "as many as fit"},
    {"rows", "any", "{first, last} of the detector's rows, from 1", usual = "all"},
    {"part", "any", "{K, N}: only the K-th of N shares of these rows (the command join puts "
        .. "their results together)"},
    {"ranks", "any", "the number of ranks of an MPI run that share the chunks (mb.cluster.size)",
        usual = "1: each rank works alone"},
    {"center", "any", "0-based column of the rotation axis, halfway down the detector", unit = "px",
        usual = "what the search finds"},
    {"axis_tilt", "number", "angle between the axis and the detector's columns; positive: further "
        .. "right in lower rows", unit = "rad", usual = "0"},
    {"vertical_shifts", "list", "rows to shift each projection by: one number per projection"},
    {"shifted_rows", "any", "rows that vertical shifts take from outside the detector: \"mark\" "
        .. "in the result, or \"leave_out\"", usual = "mark"},
    {"flip", "any", "how the frames are stored: \"none\" (upright), \"rows\" (upside down), "
        .. "\"columns\" (mirrored) or \"both\"", usual = "as the scan says"},
    {"reverse_rotation", "any", "true: the stage turns the other way than the angles say",
        usual = "as the scan says"},
    {"flat_mode", "any", "how flats and darks are averaged: \"mean\" or \"median\"",
        usual = "mean"},
    {"flat_interpolation", "any", "\"mean\": all flats are averaged; \"linear\": between groups of "
        .. "flats, by frame number (step flat_field)", usual = "mean"},
    timeline.normalize,
    {"log", "any", "false: the frames are line integrals already", usual = "true"},
    {"overlap", "any", "read and write beside the computing, which takes a second set of chunks on "
        .. "the device; \"auto\": where that fits", usual = "auto"},
    {"threads", "any", "threads that read, and as many that write", usual = "by the processors"},
    {"pinned", "any", "pinned host memory for reading and writing", unit = "bytes",
        usual = "256 MiB; none for arrays that are pinned themselves"},
    {"dtype", "any", "how the slices are stored: \"f32\", \"f16\" or \"u16\"", usual = "f32"},
    {"range", "list", "{low, high}: what is stored as 0 and as the largest value",
        usual = "from nine slices"},
    {"slices_per_file", "any", "the result's, where the volume goes to several files"},
    {"out", "any", "the array on the host that the slices go to, where that is no result"},
    {"quiet", "any", "no progress"},
    declared.from("ramp_filter", "filter", "cutoff", "padding", "pad_width"),
    declared.from("backproject", "size", "circle", "scale", "accuracy"),
    {"method", "any", methods.options.method.doc .. "; or an iterative one: "
        .. table.concat(iterative.names, ", "), usual = "auto"},
    {"mode", "any", methods.options.mode.doc, usual = "auto"},
    {"angle_weights", "any", "of direct methods: " .. angle_weights.option.weights.doc,
        usual = "auto"},
    {"half_acquisition", "any", methods.options.half_acquisition.doc},
    method_options.declarations())
