-- What messages of the commands for images advise (spec/support/advised.lua).

local D <const> = "deconvolve i.tif q.tif -o o.tif -d host --iterations 2 "
local MODEL <const> = "deconvolve i.tif -o o.tif -d host --iterations 2 --na 0.5 --index 1 "
    .. "--pixel 200 --step 500 "
local LENS <const> = "psf -o o.tif --na 0.5 --index 1 --pixel 200 --step 500 --size 3,5,5 -d host "
local C <const> = "convolve --image i.tif --psf p.tif -o o.tif -d host "

return {
    {source = "holds no data; moonbeam --plan", words = "deconvolve i.tif p.tif -o o.tif "
        .. "-d planned:h200", says = "moonbeam --plan --device planned:h200 deconvolve",
        follows = {"--plan --device planned:h200 deconvolve i.tif p.tif -o o.tif",
            "deconvolve i.tif p.tif --plan -d planned:h200"}},
    {source = {"is for the host beside a GPU, and the work is on the host",
        "give --budget %d instead"}, words = D
        .. "--host-budget 1G", says = "--host-budget 1000000000 is for the host beside a GPU, and the work "
        .. "is on the host itself: give --budget 1000000000 instead", follows = {D .. "--budget 1G"}},
    {source = "is for the host beside a GPU, and the work is on the host", words = C
        .. "--host-budget 1G -b 2G", says = "leave it out; --budget 2000000000 limits the host",
        follows = {C .. "-b 2G"}},
    {source = "is for the host beside a GPU, and the work is on the host", words = LENS
        .. "--wavelength 500 --host-budget 1G", says = "give --budget 1000000000 instead",
        follows = {LENS .. "--wavelength 500 --budget 1G"}},
    {source = "one argument too many: %s; several images", says = "several images need --into",
        words = "deconvolve i.tif p.tif k.tif -o o.tif -d host",
        follows = {"deconvolve i.tif k.tif --into out --psf p.tif --iterations 1 --overwrite -d host"}},
    {source = "says where results go, and --output too", says = "give one of them",
        words = "deconvolve i.tif k.tif --into out --psf p.tif -o o.tif -d host",
        follows = {"deconvolve i.tif k.tif --into out --psf p.tif --iterations 1 --overwrite -d host"}},
    {source = "is for one image, and --into for several", says = "--curve is for one image",
        words = "deconvolve i.tif k.tif --into out --psf p.tif --curve p.png -d host",
        follows = {D .. "--curve p.png"}},
    {source = "is for --into FOLDER: leave it out", words = D .. "--skip-done",
        says = "--skip-done is for --into FOLDER", follows = {D,
            "deconvolve i.tif --into out --psf p.tif --iterations 1 --skip-done -d host"}},
    {source = "cannot name a result after the pattern", says = "give its folder",
        words = "deconvolve 'ser/*.tif' --into out --psf p.tif -d host",
        follows = {"deconvolve ser --into out --psf p.tif --iterations 1 --overwrite -d host"}},
    {source = "of several images (--into)", says = "make it first",
        words = "deconvolve i.tif --into out --psf p.tif --preview nowhere -d host --overwrite",
        follows = {"!mkdir -p there && $MOONBEAM_BIN deconvolve i.tif --into out --psf p.tif "
            .. "--preview there --iterations 1 -d host --overwrite"}},
    {source = "--skip-done leaves out the images", says = "--skip-done leaves out",
        before = {"deconvolve i.tif --into out --psf p.tif --iterations 1 -d host --overwrite"},
        words = "deconvolve i.tif --into out --psf p.tif --iterations 1 -d host",
        follows = {"deconvolve i.tif --into out --psf p.tif --iterations 1 -d host --skip-done"}},
    {source = "they are not flat, so nothing is subtracted", words = "deconvolve i.tif p.tif "
        .. "-o o.tif -d host --iterations 2", warns = true,
        says = "--psf-background faces or a number does, none is silent",
        follows = {"deconvolve i.tif p.tif -o o.tif -d host --iterations 2 --psf-background none",
            "deconvolve i.tif p.tif -o o.tif -d host --iterations 2 --psf-background 0.01"}},
    {source = "subtracted from the PSF: the median of its faces", warns = true, repeats = true,
        words = "deconvolve i.tif flat.tif -o o.tif -d host --iterations 2",
        says = "(--psf-background)", follows = {
            "deconvolve i.tif flat.tif -o o.tif -d host --iterations 2 --psf-background none"}},
    {source = "--psf-spacing needs --pixel and --step", words = D .. "--psf-spacing 600,250,250",
        says = "needs --pixel and --step", follows = {D .. "--psf-spacing 600,250,250 --pixel 200 "
            .. "--step 500"}},
    {source = "--psf-spacing of a PSF of one plane needs --pixel", says = "needs --pixel",
        words = "deconvolve i.tif flat1.tif -o o.tif -d host --iterations 2 --psf-spacing 250,250",
        follows = {"deconvolve i.tif flat1.tif -o o.tif -d host --iterations 2 "
            .. "--psf-spacing 250,250 --pixel 200"}},
    {source = "--psf-spacing has %s, and the PSF", says = "give Z,Y,X",
        words = D .. "--psf-spacing 250,250 --pixel 200 --step 500",
        follows = {D .. "--psf-spacing 600,250,250 --pixel 200 --step 500"}},
    {source = "--psf-spacing resamples the PSF", warns = true,
        words = "deconvolve i.tif q.tif -o o.tif -d host --iterations 2 --pixel 150 --step 500",
        says = "--psf-spacing resamples", follows = {"deconvolve i.tif q.tif -o o.tif -d host "
            .. "--iterations 2 --pixel 150 --step 500 --psf-spacing 500,200,200"}},
    {source = "does not tell its gain and offset", words = D .. "--gain auto --offset auto",
        says = "give --gain and --offset", follows = {D .. "--gain 2 --offset 1"}},
    {source = "so 10 iterations are made; give --gain", warns = true,
        words = "deconvolve i.tif q.tif -o o.tif -d host --iterations auto",
        says = "--gain and --offset, or a number",
        follows = {D}},
    {source = "fewer than %d iterations (--every)", warns = true,
        words = D .. "--snapshots p.png --every 5", says = "(--every)",
        follows = {D .. "--snapshots p.png --every 1"}},
    {source = "lengths are in nanometers: give --%s", words = MODEL .. "--wavelength 0.5",
        says = "give --wavelength 500 for 0.5 um", follows = {MODEL .. "--wavelength 500"}},
    {source = "is given: leave one of them out", words = D .. "--na 0.5",
        says = "leave one of them out", follows = {D, MODEL .. "--wavelength 500"}},
    {source = "--model richards_wolf has it", warns = true, says = "--model richards_wolf has it",
        words = "psf -o o.tif --na 1.4 --index 1.5 --wavelength 500 --pixel 100 --step 200 "
            .. "--size 3,9,9 -d host --model born_wolf",
        follows = {"psf -o o.tif --na 1.4 --index 1.5 --wavelength 500 --pixel 100 --step 200 "
            .. "--size 3,9,9 -d host --model richards_wolf"}},
    {source = "is for --model %s; the model is", words = LENS .. "--wavelength 500 "
        .. "--model born_wolf --polarization x", says = "--polarization is for --model",
        follows = {LENS .. "--wavelength 500 --model richards_wolf --polarization x"}},
    {source = "give one, or one for each channel", words = MODEL .. "--wavelength 500,600",
        says = "give one, or one for each channel", follows = {MODEL .. "--wavelength 500"}},
    {source = "how thick the sheet is, is missing", words = LENS .. "--wavelength 500 "
        .. "--model light_sheet", says = "give --sheet, or --sheet-na with --excitation",
        follows = {LENS .. "--wavelength 500 --model light_sheet --sheet 2000",
            LENS .. "--wavelength 500 --model light_sheet --sheet-na 0.1 --excitation 450"}},
    {source = "px hold %s%s%s: --psf-size changes it", warns = true, repeats = true,
        words = MODEL .. "--wavelength 500", says = "--psf-size changes it",
        follows = {MODEL .. "--wavelength 500 --psf-size 5"}},
    {source = {"where these are slices, --axes Z says so", "that they are not (the model"}, words = "deconvolve times.tif -o o.tif "
        .. "-d host --iterations 1 --na 0.5 --index 1 --pixel 200 --step 500 --wavelength 500",
        says = "--axes Z says so", follows = {"deconvolve times.tif -o o.tif -d host "
            .. "--iterations 1 --na 0.5 --index 1 --pixel 200 --step 500 --wavelength 500 --axes Z",
            "deconvolve times.tif -o o.tif -d host --iterations 1 --na 0.5 --index 1 --pixel 200 "
            .. "--step 500 --wavelength 500 --axes T"}},
    {source = "only TIFF and OME-Zarr results hold", words = "deconvolve two.tif one.tif -o o.npy "
        .. "-d host --iterations 1", says = "with --channel N --frame N", follows = {
            "deconvolve two.tif one.tif -o o.tif -d host --iterations 1",
            "deconvolve two.tif one.tif -o o.zarr -d host --iterations 1",
            "deconvolve two.tif one.tif -o o.npy -d host --iterations 1 --channel 1 --frame 1"}},
    {source = "--tiles %s has no %s: leave --tiles %s out",
        words = "deconvolve i.tif p.tif -o o.tif -d host --method wiener --tiles exact",
        says = "leave --tiles exact out", follows = {
            "deconvolve i.tif p.tif -o o.tif -d host --method wiener",
            D .. "--tiles exact"}},
    {source = "--tiles blended does not wrap", says = "--tiles exact does",
        words = D .. "--tiles blended --boundary circular --tile 4,16,16",
        follows = {D .. "--tiles exact --boundary circular --tile 4,16,16"}},
    {source = "leave --tiles none out, or start anew", before = {
        "-e 'require([[moonbeam]]).debug.fail_step(60)' $MOONBEAM_SCRIPTS/deconvolve.lua " .. D:sub(12)
        .. "--tiles exact --tile 4,16,16 --place file"},
        words = D .. "--resume --tiles none", says = "leave --tiles none out",
        follows = {D .. "--resume --tile 4,16,16", D .. "--discard --tiles none"}},
    {source = "is not for --method %s: leave it out", words = "deconvolve i.tif p.tif -o o.tif "
        .. "-d host --method wiener --iterations 3", says = "leave it out",
        follows = {"deconvolve i.tif p.tif -o o.tif -d host --method wiener"}},
    {source = "--iterations auto is for --method rl", says = "gradient_consensus stops by itself",
        words = "deconvolve i.tif p.tif -o o.tif -d host --method gradient_consensus "
            .. "--iterations auto", follows = {
            "deconvolve i.tif p.tif -o o.tif -d host --method gradient_consensus",
            "deconvolve i.tif p.tif -o o.tif -d host --iterations auto"}},
    {source = "with less than 1, gradient_consensus ends too late", warns = true,
        words = "deconvolve few.tif q.tif -o o.tif -d host --gain 1 --offset 0 "
            .. "--method gradient_consensus --iterations 2",
        says = "--method rl --iterations auto ends in time", follows = {"deconvolve few.tif q.tif "
            .. "-o o.tif -d host --gain 1 --offset 0 --method rl --iterations auto"}},
    {source = "--every is for --snapshots FILE", words = D .. "--every 1",
        says = "which is missing", follows = {D .. "--every 1 --snapshots p.png"}},
    {source = "--resume goes on with what --discard removes", words = D .. "--resume --discard",
        says = "give one of them", follows = {D .. "--discard"}},
    {source = "the PSF is the image itself", words = "deconvolve i.tif i.tif -o o.tif -d host",
        says = "--psf FILE names the PSF", follows = {D,
            "deconvolve i.tif k.tif --into out --psf p.tif --iterations 1 --overwrite -d host"}},
    {source = "extents; it is N, Y,X or Z,Y,X", words = MODEL .. "--wavelength 500 "
        .. "--psf-size 1,3,5,5", says = "it is N, Y,X or Z,Y,X", follows = {
            MODEL .. "--wavelength 500 --psf-size 5", MODEL .. "--wavelength 500 --psf-size 5,5",
            MODEL .. "--wavelength 500 --psf-size 3,5,5"}},
    {source = "give a measured PSF, as the second argument", says = "with --psf",
        words = "deconvolve line.npy -o o.npy -d host --na 0.5 --index 1 --pixel 200 --step 500 "
            .. "--wavelength 500", follows = {
            "deconvolve line.npy line_psf.npy -o o.npy -d host --iterations 1",
            "deconvolve line.npy --psf line_psf.npy -o o.npy -d host --iterations 1"}},
    {source = "--tiles exact cuts", warns = true, words = D .. "--tile 4,16,16",
        says = "--tiles exact cuts it", follows = {D .. "--tile 4,16,16 --tiles exact"}},
    {source = "--metrics is not for --tiles blended", says = "--metrics is not for",
        words = D .. "--tiles blended --tile 4,16,16 --metrics",
        follows = {D .. "--tiles exact --tile 4,16,16 --metrics",
            D .. "--tiles blended --tile 4,16,16"}},
    {source = {"is not for --tiles blended, where"}, says = "--curve is not for --tiles blended",
        words = D .. "--tiles blended --tile 4,16,16 --curve p.png",
        follows = {D .. "--tiles exact --tile 4,16,16 --curve p.png"}},
    {source = "--ranks needs --plan: start a run", words = D .. "--ranks 2",
        says = "--ranks needs --plan", follows = {D .. "--ranks 2 --plan --tiles exact "
            .. "--tile 4,16,16"}},
    {source = "--ranks-per-node needs --ranks", words = D .. "--ranks-per-node 2 --plan",
        says = "needs --ranks", follows = {D .. "--ranks 2 --ranks-per-node 2 --plan --tiles exact "
            .. "--tile 4,16,16"}},
    {source = "and there are %d ranks, which share tiles", words = D .. "--plan --ranks 2",
        says = "give --tiles exact or --tiles blended",
        follows = {D .. "--ranks 2 --plan --tiles exact --tile 4,16,16",
            D .. "--ranks 2 --plan --tiles blended --tile 4,16,16", D .. "--plan"}},
    {source = "ranks share the tiles of one: leave out --ranks", says = "leave out --ranks",
        words = "deconvolve i.tif k.tif --into out --psf p.tif -d host --plan --ranks 2",
        follows = {"deconvolve i.tif k.tif --into out --psf p.tif -d host --plan"}},
    {source = "say which with the option image", words = "deconvolve images.ome.tif one.tif -o o.tif "
        .. "-d host --iterations 1", says = "with --image-number", follows = {
            "deconvolve images.ome.tif one.tif -o o.tif -d host --iterations 1 --image-number 2"}},
    {source = "say what the pages are with the option axes", says = "say what the pages are with --axes",
        words = "deconvolve lost.tif one.tif -o o.tif -d host --iterations 1",
        follows = {"deconvolve lost.tif one.tif -o o.tif -d host --iterations 1 --axes Z",
            "deconvolve lost.tif one.tif -o o.tif -d host --iterations 1 --axes Z --pages 1:4"}},
    {source = "--%s is for simulated spheres; with --image", says = "leave it out",
        words = C .. "--mode full", follows = {C}},
    {source = "and %s; say which: --channel, --frame", words = "convolve --image two.tif --psf one.tif "
        .. "-o o.tif -d host", says = "say which: --channel, --frame", follows = {
            "convolve --image two.tif --psf one.tif -o o.tif -d host --channel 1 --frame 1"}},
    {source = "and %s; say which: --channel, --frame", words = "convolve --image two.tif --psf one.tif "
        .. "-o o.tif -d host --channel 2", says = "say which: --channel, --frame", follows = {
            "convolve --image two.tif --psf one.tif -o o.tif -d host --channel 2 --frame 2"}},
    {source = "--tiles gives --mode same: leave", says = "leave --mode full out",
        words = "convolve --size 8,16,16 -o o.tif -d host --sigma 1 --tiles always --mode full",
        follows = {"convolve --size 8,16,16 -o o.tif -d host --sigma 1 --tiles always --boundary zero"}},
    {source = "tiles do not wrap around: give", says = "give --boundary zero, reflect",
        words = "convolve --size 8,16,16 -o o.tif -d host --sigma 1 --tiles always",
        follows = {"convolve --size 8,16,16 -o o.tif -d host --sigma 1 --tiles always "
            .. "--boundary reflect"}},
    {source = "is for --from-beads FILE, which is missing", words = LENS
        .. "--wavelength 500 --bead-diameter 100", says = "which is missing",
        follows = {LENS .. "--wavelength 500"}},
    {source = "--from-beads measures the PSF: leave one", words = "psf -o o.tif --from-beads i.tif "
        .. "--na 0.5 --pixel 200 --step 500 -d host", says = "leave one of them out",
        follows = {LENS .. "--wavelength 500"}},
    {source = "--tolerance is not for --tiles blended", says = "leave it out, or give --tiles exact",
        words = D .. "--tiles blended --tile 4,16,16 --tolerance 1e-3",
        follows = {D .. "--tiles blended --tile 4,16,16",
            D .. "--tiles exact --tile 4,16,16 --tolerance 1e-3"}},
    {source = "gives the same bits with any budget, place and number of ranks", warns = true,
        words = D .. "--tiles exact", says = "--tiles exact --tile 10,22,22 gives the same bits",
        repeats = true, follows = {D .. "--tiles exact --tile 10,22,22 --place file"}},
    {source = "there is nothing to do for %d of %d ranks: ask for less, or", warns = true,
        words = D .. "--tiles exact --tile 10,22,22 --plan --slurm --ranks 2",
        says = "ask for less, or for more tiles, by a smaller --tile",
        follows = {D .. "--tiles exact --tile 10,22,22 --plan --slurm --ranks 1",
            D .. "--tiles exact --tile 10,11,22 --plan --slurm --ranks 2"}},
}
