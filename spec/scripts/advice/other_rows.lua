-- What messages of other commands, and of runs that were interrupted, advise.

local S <const> = "stitch a.h5 b.h5 -o o.h5 "
local KILL <const> = "-e 'require([[moonbeam]]).debug.fail_step(%d)' $MOONBEAM_SCRIPTS/%s.lua "
local R <const> = "reconstruct sim.h5 -o o.h5 -d host -c 11.5 --chunk 2 "
local KILLED <const> = KILL:format(22, "reconstruct") .. R:sub(13)
local D <const> = "deconvolve i.tif q.tif -o o.tif -d host --iterations 2 --tiles exact --tile 4,16,16 "
    .. "--place file "
local TILES <const> = KILL:format(60, "deconvolve") .. D:sub(12)

return {
    -- runs that were interrupted
    {source = "it keeps an interrupted run. Go on with the option", before = {KILLED}, words = R,
        says = "Go on with --resume, or remove it and start anew with --discard",
        follows = {R .. "--resume", R .. "--discard"}},
    {source = "the run that it keeps cannot go on", before = {KILLED, "!: > o.h5.unfinished/journal"},
        words = R, says = "start anew with --discard", follows = {R .. "--discard"}},
    {source = "remove it and start anew with the option discard", says = "start anew with --discard",
        before = {KILLED, "!: > o.h5.unfinished/journal"}, words = R .. "--resume",
        follows = {R .. "--discard"}},
    {source = "remove it and start anew with the option discard",
        before = {KILLED, "!rm o.h5.unfinished/journal"}, words = R .. "--resume",
        says = "start anew with --discard", follows = {R .. "--discard"}},
    {source = "remove it and start anew with the option discard", before = {KILLED},
        words = R .. "--resume --filter hann", says = "start anew with --discard",
        follows = {R .. "--resume", R .. "--discard --filter hann"}},
    {source = "there is nothing to resume: '%s' %s; leave", words = R .. "--resume",
        says = "leave --resume out", follows = {R}},
    {source = "has what no run has made, such as", before = {KILLED, "!echo > o.h5.unfinished/mine"},
        words = R .. "--discard", says = "move that elsewhere",
        follows = {"!mv o.h5.unfinished/mine . && $MOONBEAM_BIN " .. R .. "--discard"}},
    {source = "go on with the option resume = true, or start anew with", before = {TILES}, words = D,
        says = "Go on with --resume, or remove it and start anew with --discard",
        follows = {D .. "--resume", D .. "--discard"}},
    {source = "the head of the result in '%s' is damaged", before = {
        (KILLED:gsub("o%.h5", "o.zarr")), "!: > o.zarr.unfinished/o.zarr.head"},
        words = (R:gsub("o%.h5", "o.zarr")) .. "--resume", says = "start anew with --discard",
        follows = {(R:gsub("o%.h5", "o.zarr")) .. "--discard"}},
    {source = "layout %s, and this run has %s: go on with the option zarr_layout", before = {
        (KILLED:gsub("o%.h5", "o.zarr"))},
        words = (R:gsub("o%.h5", "o.zarr")) .. "--resume --zarr-layout chunks",
        says = "layout shards, and this run has chunks: go on with --zarr-layout shards, or start anew "
            .. "with --discard", follows = {(R:gsub("o%.h5", "o.zarr")) .. "--resume --zarr-layout shards",
            (R:gsub("o%.h5", "o.zarr")) .. "--resume",
            (R:gsub("o%.h5", "o.zarr")) .. "--discard --zarr-layout chunks"}},
    -- simulate
    {source = "which passes no sample; energies are in eV", says = "give --energy",
        words = "simulate made.h5 --size 16 -a 12 -d host --phase 1 --energy 20 -q",
        follows = {"simulate made.h5 --size 16 -a 12 -d host --phase 1 --energy 20000 -q"}},
    {source = "--half-acquisition needs a whole turn; --span", says = "give 360",
        words = "simulate made.h5 --size 16 -a 12 -d host -q --half-acquisition --span 180",
        follows = {"simulate made.h5 --size 16 -a 12 -d host -q --half-acquisition --span 360",
            "simulate made.h5 --size 16 -a 12 -d host -q --half-acquisition"}},
    -- import_recipe
    {source = "ends neither in .conf nor in .yaml", words = "import_recipe recipe.txt -o o.lua",
        says = "give --from nabu or --from httomo", follows = {
            "import_recipe recipe.txt -o o.lua --from httomo"}},
    -- batch
    {source = "cannot be used here: %s", words = "batch sim.h5 -- -o o.h5",
        says = "--into and --format say where results go",
        follows = {"batch sim.h5 --into into --format tif -- -d host -c 11.5 --overwrite"}},
    {source = "--skip-done goes on with interrupted scans", words = "batch sim.h5 -- --resume",
        says = "--skip-done goes on", before = {"!rm -rf o o.h5*",
            (KILLED:gsub("o%.h5", "into/sim.tif"):gsub("sim%.tif", "sim.h5"))},
        follows = {"batch sim.h5 --into into --skip-done -- -d host -c 11.5 --chunk 2"}},
    {source = "--resume goes on with one scan: give", words = "batch sim.h5 --into into --resume",
        says = "give --resume auto or --skip-done", follows = {
            "batch sim.h5 --into into --resume auto -- -d host -c 11.5",
            "batch sim.h5 --into into --skip-done -- -d host -c 11.5"}},
    {source = "--skip-done keeps the results that --overwrite", says = "give one of them",
        words = "batch sim.h5 --into into --skip-done -- --overwrite -d host -c 11.5",
        follows = {"batch sim.h5 --into into --skip-done -- -d host -c 11.5",
            "batch sim.h5 --into into -- --overwrite -d host -c 11.5"}},
    {source = "--into: there is no folder '%s'; make it", words = "batch sim.h5 --into nowhere",
        says = "make it first", follows = {
            "!mkdir -p nowhere && $MOONBEAM_BIN batch sim.h5 --into nowhere -- -d host -c 11.5 "
            .. "--overwrite"}},
    {source = "give --skip-done, or -- --overwrite", says = "give --skip-done",
        before = {"batch sim.h5 --into into -- --overwrite -d host -c 11.5"},
        words = "batch sim.h5 --into into -- -d host -c 11.5", follows = {
            "batch sim.h5 --into into --skip-done -- -d host -c 11.5",
            "batch sim.h5 --into into -- --overwrite -d host -c 11.5"}},
    {source = "(options of reconstruct stand behind --)", words = "batch sim.h5 --into into --rows 1:2",
        says = "stand behind --", follows = {
            "batch sim.h5 --into into -- --rows 1:2 -d host -c 11.5 --overwrite"}},
    {source = "go on with the others: the same command", says = "the same command with --skip-done",
        before = {"!rm -rf into/*"}, ends = 1,
        words = "batch broken.h5 sim.h5 --into into --stop -- -d host -c 11.5",
        follows = {"batch broken.h5 sim.h5 --into into --skip-done -- -d host -c 11.5"},
        repeats = true},
    {source = "each scan has a process of its own, which --plan", says = "plan one scan with reconstruct",
        words = "--plan batch sim.h5", follows = {"reconstruct sim.h5 --plan -d host"}},
    {source = "plan one scan with reconstruct", words = "batch sim.h5 -- --plan",
        says = "plan one scan with reconstruct", follows = {"reconstruct sim.h5 --plan -d host"}},
    {source = "--stop is for scans one after the other", words = "batch sim.h5 --slurm --stop",
        says = "leave it out", follows = {"batch sim.h5 --slurm"}},
    {source = "--slurm stands before --: it is", words = "batch sim.h5 -- --slurm",
        says = "an option of batch", follows = {"batch sim.h5 --slurm"}},
    {source = "each scan is a task; plan one scan", words = "batch sim.h5 --slurm -- --part 1/2",
        says = "plan one scan with reconstruct",
        follows = {"reconstruct sim.h5 -d host -o o-n.h5 --part 1/2 --plan --slurm"}},
    -- parts and join
    {source = "is no part of a run: give files that", words = "join a.h5 b.h5 -o o.h5",
        says = "reconstruct --part K/N", follows = {
            "!for k in 1 2; do $MOONBEAM_BIN reconstruct sim.h5 -o o-x.h5 -d host -c 11.5 -q "
            .. "--part $k/2 || exit 1; done; $MOONBEAM_BIN join o-x-part-1-of-2.h5 "
            .. "o-x-part-2-of-2.h5 -o o.h5", "stitch a.h5 b.h5 -o o.h5 --overlap 2"}},
    {source = "make it by --part", before = {"!rm -f o-x*", "reconstruct sim.h5 -o o-x.h5 -d host "
        .. "-c 11.5 -q --part 1/2"}, words = "join o-x-part-1-of-2.h5 -o o.h5",
        says = "make it by --part 2/2", follows = {
            "!$MOONBEAM_BIN reconstruct sim.h5 -o o-x.h5 -d host -c 11.5 -q --part 2/2 && "
            .. "$MOONBEAM_BIN join o-x-part-1-of-2.h5 o-x-part-2-of-2.h5 -o o.h5"}},
    {source = "it was interrupted: go on with it by --part", says = "--part 2/2 --resume", before = {
        "!rm -rf o-x*", "reconstruct sim.h5 -o o-x.h5 -d host -c 11.5 -q --part 1/2",
        KILL:format(18, "reconstruct")
            .. "sim.h5 -o o-x.h5 -d host -c 11.5 -q --chunk 2 --part 2/2"},
        words = "join o-x-part-1-of-2.h5 -o o.h5", follows = {
            "!$MOONBEAM_BIN reconstruct sim.h5 -o o-x.h5 -d host -c 11.5 -q --part 2/2 --resume && "
            .. "$MOONBEAM_BIN join o-x-part-1-of-2.h5 o-x-part-2-of-2.h5 -o o.h5"}},
    {source = "--resume goes on with a run, and join", words = "join o-x-part-1-of-2.h5 "
        .. "o-x-part-2-of-2.h5 -o o.h5 --resume", says = "give --resume auto, or leave it out",
        before = {"!for k in 1 2; do $MOONBEAM_BIN reconstruct sim.h5 -o o-x.h5 -d host -c 11.5 -q "
            .. "--overwrite --part $k/2; done"}, follows = {
            "join o-x-part-1-of-2.h5 o-x-part-2-of-2.h5 -o o.h5 --resume auto",
            "join o-x-part-1-of-2.h5 o-x-part-2-of-2.h5 -o o.h5"}},
    -- stitch
    {source = "--heights has %s for", words = S .. "--heights 0", says = "1 number for 2",
        follows = {S .. "--heights 0,0"}},
    {source = "--overlap has %s; give one", words = S .. "--overlap 2,2",
        says = "or one for each of the 1 pair", follows = {S .. "--overlap 2"}},
    {source = "a number of slices, or one for each pair", words = S .. "--overlap x",
        says = "such as 12,14", follows = {S .. "--overlap 2"}},
    {source = "but the heights of '%s' and '%s' are not known", words = "stitch plain_a.h5 "
        .. "plain_b.h5 -o o.h5 --by positions", says = "give --heights, or --by correlation",
        follows = {"stitch plain_a.h5 plain_b.h5 -o o.h5 --heights 0,0.003 --step 1",
            "stitch plain_a.h5 plain_b.h5 -o o.h5 --by correlation --overlap 2"}},
    {source = "are %d slices apart; give --heights or", words = S .. "--by positions --heights 0,0.06",
        says = "give --heights or --overlap N", follows = {S .. "--by positions --heights 0,0",
            S .. "--overlap 2"}},
}
