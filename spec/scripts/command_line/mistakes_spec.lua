-- Typical mistakes at a shell and in Lua, and the one line that answers each: what is wrong, with
-- its name or value, and what to do. A row is {what is typed, what names the thing, the remedy,
-- status}; the remedy is a pattern that must match behind the first one.
local commands = require "spec.support.commands"
local files = require "spec.support.files"
local helper = require "spec.helper"
local mb = require "moonbeam"

local shell

-- S, N, P, I, F, K: a scan, an NXtomo scan, a file that is no scan, a stack, one frame and a PSF;
-- R: a recipe; O: a result; Y, Z: files that exist, .npy
-- and .h5.
local SHELL <const> = {
    {"reconstruct", "SCAN is missing", "%-%-help"},
    {"reconstruct O.none.h5", "none.h5'", "check the name", 1},
    {"reconstruct S --remove-rings", "%-%-remove%-rings", "the step stripes_all"},
    {"reconstruct S --ring-removal vo", "%-%-ring%-removal", "the step stripes_all"},
    {"reconstruct S --energy 20", "%-%-energy", "the step paganin"},
    {"reconstruct S --delta-beta 500", "%-%-delta%-beta", "the step paganin"},
    {"reconstruct S --crop 5", "%-%-crop", "the step crop"},
    {"reconstruct S --sharpen", "%-%-sharpen", "the step unsharp"},
    {"reconstruct S --paganin", "%-%-paganin", "the step paganin"},
    {"reconstruct S --binning 2", "%-%-binning", "the step bin"},
    {"reconstruct S --dezinger", "%-%-dezinger", "the step dezinger"},
    {"reconstruct S --phase-retrieval", "%-%-phase%-retrieval", "the step paganin"},
    {"reconstruct S --rotation-axis 20", "%-%-rotation%-axis", "%-%-center"},
    {"reconstruct S --cor 20", "%-%-cor", "%-%-center"},
    {"reconstruct S --nproc 4", "%-%-nproc", "%-%-threads"},
    {"reconstruct S --max-memory 8G", "%-%-max%-memory", "%-%-budget"},
    {"reconstruct S --start-row 5", "%-%-start%-row", "%-%-rows"},
    {"reconstruct S --sirt", "%-%-sirt", "%-%-method sirt"},
    {"reconstruct S --filtr hann", "%-%-filtr", "%-%-filter"},
    {"reconstruct S --outptu x.h5", "%-%-outptu", "%-%-output"},
    {"reconstruct S -f hanning", '%-%-filter: "hanning"', "did you mean hamming"},
    {"reconstruct S --method forier", '"forier"', "did you mean fourier"},
    {"reconstruct S --center 900", "%-%-center 900", "columns 0 to 47"},
    {"reconstruct S --center left", '%-%-center is "left"', "give a column"},
    {"reconstruct S --rows 0:3 -o O.h5", "0", "the scan has rows 1 to 6"},
    {"reconstruct S --rows 5:99 -o O.h5", "99", "the scan has rows 1 to 6"},
    {"reconstruct S --rows 5-9", '"5%-9"', "such as 10:20"},
    {"reconstruct S --method sirt --filter hann", "%-%-filter", "direct methods"},
    {"reconstruct S --method mlem --iterations 1 -c 23.5 -q -o O.h5", "values from %-",
        "%-%-negative zero", 1},
    {"reconstruct S --iterations 10", "%-%-iterations", "such as %-%-method cgls"},
    {"reconstruct S --iterations ten", '"ten"', "a whole number"},
    {"reconstruct S --budget 8GBB", '"8GBB"', "such as 8G"},
    {"reconstruct S --budget 20Ki --plan", "20 KiB are available", "give %-%-budget [%d.]+[KM] or", 1},
    {"reconstruct S --budget", "%-%-budget", "%-%-budget SIZE"},
    {"reconstruct S -o out.jpg", "out.jpg", "must end in"},
    {"reconstruct S -p out.jpg", "out.jpg", "must end in .png"},
    {"reconstruct O.none.h5 -o O.tif --slices-per-file 1", "%-%-slices%-per%-file", "ends in .h5"},
    {"reconstruct S more.h5", "one argument too many: more.h5", "%-%-help"},
    {"reconstruct S --device gpu", '"gpu"', 'valid names are "host"'},
    {"reconstruct S --device cuda:31", "cuda:31", "; choose [%w:]+, or plan for planned:h200", 1},
    {"reconstruct S --output-dtype u16", '"u16"', "did you mean uint16"},
    {"reconstruct S --angles 0:180", "%-%-angles", "needs %-%-angle%-unit"},
    {"reconstruct S --angles 0:180 --angle-unit degrees", '"degrees"', "one of deg, rad"},
    {"reconstruct P", "is not a scan", "%-%-data%-path, %-%-angles", 1},
    {"reconstruct P --data-path /frames", "has no angles", "%-%-angles .* %-%-angle%-unit", 1},
    {"reconstruct N --entry /entry7", "/entry7", "; give /entry with %-%-entry", 1},
    {"reconstruct I", "image.npy", "give %-%-angles .* and %-%-angle%-unit", 1},
    {"reconstruct S --recipe O.lua", "there is no file", "its recipes are", 1},
    {"reconstruct S --recipe tomopy_gridrc", "tomopy_gridrc", "did you mean 'tomopy_gridrec'", 1},
    {"reconstruct S --recipe tomopy_gridrec --center 20", "%-%-center", "%-%-set center.column=X"},
    {"reconstruct S --recipe tomopy_gridrec --set fourier.filtr=hann", "'filtr'",
        "did you mean 'filter'", 1},
    {"reconstruct S --recipe tomopy_gridrec --set furier.filter=hann", "'furier'",
        "did you mean 'fourier'", 1},
    {"reconstruct S --recipe tomopy_gridrec --set filter=hann", "'filter'", "write step.option", 1},
    {"reconstruct S --recipe R -o O.h5", "step paganin: energy and distance are missing",
        "give %-%-set paganin.energy=VALUE, photon energy", 1},
    {"reconstruct S --recipe R --set paganin.energy=20000 --set paganin.distance=0.1 --set "
        .. "flat_field.interpolation=linear -o O.h5", "step flat_field: the scan does not say when",
        "or %-%-set flat_field.interpolation=mean", 1},
    {"reconstruct S --set fbp.filter=hann", "%-%-set", "without %-%-recipe"},
    {"reconstruct S --sweep center.column=20:25:1 --row 3", "%-%-sweep, %-%-row",
        "without %-%-recipe"},
    {"reconstruct S --snapshots O", "%-%-snapshots", "without %-%-recipe"},
    {"reconstruct S --slurm", "%-%-slurm", "needs %-%-plan"},
    {"reconstruct S --resume --discard", "%-%-resume", "give one of them"},
    {"reconstruct S --pixel-size 0", '%-%-pixel%-size: "0"', "a number between"},
    {"deconvolve", "IMAGE is missing", "%-%-help"},
    {"deconvolve I", "no PSF is given",
        "%-%-output, %-%-na and %-%-wavelength are missing"},
    {"deconvolve I --na 1.4 -o O.tif", "no PSF is given",
        "%-%-wavelength, %-%-pixel and %-%-step are missing"},
    {"deconvolve I K", "the result is missing", "such as %-o result.tif"},
    {"deconvolve I K -o O.jpg", "%.jpg'", "must end in .tif"},
    {"deconvolve I K -o O.tif --method richardson_lucy", '"richardson_lucy"', "did you mean rl"},
    {"deconvolve I K -o O.tif --method weiner", '"weiner"', "did you mean wiener"},
    {"deconvolve I K -o O.tif --iter 10", "%-%-iter", "%-%-iterations"},
    {"deconvolve I K -o O.tif --dtype uint16", "%-%-dtype", "%-%-output%-dtype"},
    {"deconvolve I K -o O.tif -b reflect", '%-%-budget: "reflect"', "such as 8G.* did you mean %-%-boundary reflect%?"},
    {"deconvolve I -o O.tif --na 1.4 --wavelength 0.52 --pixel 100 --step 200",
        "%-%-wavelength is 0.52 nm", "give %-%-wavelength 520 for 0.52 um"},
    {"deconvolve F -o O.tif --na 1.4 --wavelength 520", "no PSF is given", "%-%-pixel is missing"},
    {"deconvolve F -o O.tif --plan", "no PSF is given", "%-%-na, %-%-wavelength and %-%-pixel"},
    {"deconvolve I I -o O.tif", "the PSF is the image itself", "%-%-into FOLDER"},
    {"deconvolve I K -o O.tif --tiles blended --tile 4,8,8 --metrics",
        "%-%-metrics is not for %-%-tiles blended", "iterations of its own"},
    {"deconvolve I K -o O.tif --preview-z 2", "%-%-preview%-z is for %-%-preview", "not given"},
    {"deconvolve I K -o O.tif -p x.png --preview-z 900", "plane 900", "the stack has %d+"},
    {"deconvolve I K -o O.tif -p x.jpg", "'x.jpg'", "must end in .png"},
    {"deconvolve I K -o O.tif --psf-background low", '"low"', "auto, or faces, or none"},
    {"deconvolve I K -o O.tif --gain 0", '%-%-gain: "0"', "above 0, or auto"},
    {"deconvolve I K -o O.tif --tiles 4", '"4"', "one of auto, exact"},
    {"deconvolve I K -o nowhere/x.tif", "nowhere/x.tif", "No such file or directory", 1},
    {"join O.none.h5 -o O.tif --slices-per-file 1", "%-%-slices%-per%-file", "ends in .h5"},
    {"stitch I K -o O.h5 --shift auto", "%-%-shift", "%-%-lateral"},
    {"stitch I K -o O.h5 --brightness auto", "%-%-brightness", "%-%-intensity"},
    {"stitch I K -o O.h5 --lateral yes", '"yes"', "one of auto, none"},
    {"convolve --size 8", '%-%-size: "8"', "such as 64,512,512"},
    {"convolve --image I", "the result is missing", "%-o"},
    {"convolve --image I -o O.tif --mode full", "%-%-mode full", "leave it out"},
    {"convolve --image I -o O.tif --naive", "%-%-naive", "leave it out"},
    {"simulate", "OUT is missing", "%-%-help"},
    {"simulate O.h5 --size abc", '"abc"', "a whole number from 1"},
    {"simulate O.tif", "%.tif'", "must end in .h5"},
    {"simulate S", "already exists", "%-%-overwrite", 1},
    {"simulate O.h5 --half-acquisition --span 180", "%-%-span is 180", "; give 360, or leave %-%-span out "},
    {"import_recipe S", "ends neither in .conf", "%-%-from nabu"},
    {"import_recipe none.conf", "'none.conf'", "check the name", 1},
    {"reconstruct S -f HANN", '"HANN"', "; did you mean hann%? %(%-%-help"},
    {"reconstruct S --center 23,5", "%-%-center 23,5 is TOP,BOTTOM", "has a point: 23.5"},
    {"reconstruct S --pixel-size 1um", '"1um"', "; give 1: the unit is um"},
    {"reconstruct S --pixel-size 650nm", '"650nm"', "; give 0.65: the unit is um"},
    {"reconstruct S --pixel-size 0,65", '"0,65"', "decimals have a point: 0.65"},
    {"reconstruct S --circle 95%", '"95%%"', "a part of one: 0.95"},
    {"reconstruct S --method gridrec", '"gridrec"', "did you mean fourier"},
    {"reconstruct S --method FBP_CUDA", '"FBP_CUDA"', "did you mean fbp%?"},
    {"reconstruct S --recon-algorithm gridrec", "%-%-recon%-algorithm", "%-%-method"},
    {"reconstruct S --gpu 0", "%-%-gpu", "%-%-device"},
    {"reconstruct S --dry-run", "%-%-dry%-run", "%-%-plan"},
    {"reconstruct S --force", "%-%-force", "%-%-overwrite"},
    {"reconstruct S N", "too many: .*two.h5", "moonbeam batch"},
    {"reconstruct S O.h5", "too many: [^;]*out.h5;", "%-o .*out.h5 names the result"},
    {"reconstruct S --data-path /exchange/dat -o O.h5", "'/exchange/dat'",
        "did you mean '/exchange/data'", 1},
    {"reconstruct S --flats-path /exchange/white -o O.h5", "'/exchange/white'",
        "did you mean '/exchange/data_white'", 1},
    {"reconstruct S --flats K -o O.h5", "%-%-flats is '.*psf.npy'", "3 x 3 pixels; the projections",
        1},
    {"psf p.tif", "too many: p.tif", "%-o p.tif names the result"},
    {"deconvolve I K -o O.tif --na 1.4", "%-%-na is for a model", "leave one of them out"},
    {"deconvolve I -o O.tif --na 1.4 --wavelength 520nm", '"520nm"', "give 520: the unit is nm"},
    {"deconvolve I -o O.tif --pixel 0.13um", '"0.13um"', "give 130: the unit is nm"},
    {"deconvolve I -o O.tif --na 1.4 --wavelength 520 --pixel 0.13 --step 0.3",
        "%-%-pixel is 0.13 nm", "give %-%-pixel 130 for 0.13 um"},
    {"deconvolve I -o O.tif --emission 520", "%-%-emission", "%-%-wavelength"},
    {"deconvolve I -o O.tif --pixel-size 100", "%-%-pixel%-size", "%-%-pixel%?"},
    {"deconvolve I -o O.tif --ri 1.5", "%-%-ri", "%-%-index"},
    {"deconvolve I K -o O.tif --tv 0.002", "%-%-tv", "%-%-total%-variation"},
    {"deconvolve I K -o O.tif -n 10", "%-n", "%-%-iterations"},
    {"deconvolve I K -o O.tif --algorithm rl", "%-%-algorithm", "%-%-method"},
    {"deconvolve I K -o O.tif --method wiener --iterations 5", "%-%-iterations is not for",
        "leave it out"},
    {"deconvolve I K --into nowhere", "'nowhere'", "make it first"},
    {"batch S --into nowhere", "'nowhere'", "make it first"},
    {"simulate O.h5 --pixel-size 1e-6", '%-%-pixel%-size: "1e%-6"', "between 0.0001 and"},
    {"simulate O.h5 --noise 5", "%-%-noise", "%-%-photons"},
    {"reconstruct S --budget 8 GB", "too many: GB", "without a space, 8GB"},
    {"reconstruct S --no-log yes", "too many: yes", "%-%-no%-log takes no value"},
    {"reconstruct S --recipe R --set paganin.energy 20000", "too many: 20000",
        "%-%-set paganin.energy=20000"},
    {"reconstruct S --cutoff 0 -o O.h5", "%-%-cutoff is 0", "from 1e%-06 to 4"},
    {"reconstruct S --host-budget 5x", '"5x"', "such as 8G, 512Mi or 1000000 %("},
    {"reconstruct S:/exchange/data", "SCAN is .*scan.h5:/exchange/data",
        "scan.h5 %-%-data%-path /exchange/data"},
    {"reconstruct nowhere/scan.h5", "cannot open 'nowhere/scan.h5'", "check the name", 1},
    {"reconstruct S --recipe tomopy_gridrec --row 99 --sweep fourier.cutoff=0.5,1 -o O.h5",
        "no row 99", "rows 1 to 6", 1},
    {"batch S -o O.h5", "%-o", "%-%-into FOLDER"},
    {"batch S --center 20", "%-%-center", "%-%- %-%-center .options of reconstruct"},
    {"deconvolve I K -o O.tif --format tif", "%-%-format is for %-%-into", "leave it out"},
    {"psf -o O.tif --model airy", '"airy"', "did you mean born_wolf"},
    -- Y exists: what is wrong with the options and the inputs is told before that.
    {"deconvolve I K -o Y", "already exists", "%-%-overwrite", 1},
    {"deconvolve none.npy K -o Y", "cannot open 'none.npy'", "check the name", 1},
    {"deconvolve I none.npy -o Y", "cannot open 'none.npy'", "check the name", 1},
    {"deconvolve I K --mask none.npy -o Y", "cannot open 'none.npy'", "check the name", 1},
    {"deconvolve I K --mask F -o Y", "%-%-mask is 12 x 12", "the image 4 x 12 x 12"},
    {"deconvolve I K -m wiener --tiles exact -o Y", "%-%-tiles exact", "leave %-%-tiles exact out.* or give %-%-method rl"},
    {"deconvolve I K --tiles blended --output-dtype uint16 -o Y", "%-%-tiles blended", "float32"},
    {"deconvolve I K --psf-spacing 1,1,1 -o Y", "%-%-psf%-spacing", "needs %-%-pixel"},
    {"deconvolve I K --device planned:h200 -o Y", "planned:h200 holds no data",
        "moonbeam %-%-plan %-%-device planned:h200 deconvolve", 2},
    {"reconstruct S --device cpu", '"cpu"', 'the processor is "host"'},
    {"reconstruct S --recipe R --set paganin.energy=20", "energy is 20", "20 keV are 20000 eV", 1},
    {"deconvolve I K -p x.png --preview-z 0 -o Y", '%-%-preview%-z: "0"', "1 or more each"},
    {"deconvolve I K --device gpu -o Y", '"gpu"', 'the first GPU is "cuda:0"'},
    {"deconvolve I --na 1.4 -o Y", "no PSF is given", "%-%-wavelength, %-%-pixel and %-%-step"},
    {"deconvolve I --na 1.6 --wavelength 500 --pixel 100 --step 200 -o Y", "%-%-na 1.6",
        "above the refractive index 1.515"},
    {"deconvolve I K -p x.png --preview-z 900 -o Y", "plane 900", "the stack has 4"},
    {"convolve --image I --psf K -o Y", "already exists", "%-%-overwrite", 1},
    {"convolve --image none.npy -o Y", "cannot open 'none.npy'", "check the name", 1},
    {"convolve --image I --psf none.npy -o Y", "cannot open 'none.npy'", "check the name", 1},
    {"convolve --image F --psf K -o Y", "has 3 axes, and the image 2", "give a PSF of %(y, x%)"},
    {"convolve --image I --naive -o Y", "%-%-naive", "leave it out"},
    {"convolve --image I --device gpu -o Y", '"gpu"', 'valid names are "host"'},
    {"convolve -n 4,8,8 -o Y", "already exists", "%-%-overwrite", 1},
    {"convolve -n 4,8,8 --tiles always --mode full -o Y", "%-%-tiles", "leave %-%-mode full out"},
    {"convolve -n 4,8,8 --model born_wolf --na 1.6 -o Y", "%-%-na 1.6", "refractive index 1.515"},
    {"convolve -n 4,8,8 --naive --psf-size 9,9,9 -o Y", "%-%-naive", "axis 1 is 4"},
    {"reconstruct S -o Z --angles 0:180", "%-%-angles", "needs %-%-angle%-unit"},
    {"reconstruct S -o Z --no-log --flats-path /a", "%-%-no%-log", "leave %-%-flats%-path"},
    {"reconstruct S -o Z --wait 5", "already exists", "%-%-overwrite", 1},
    {"psf -o Y --na 1.6 --wavelength 500 --pixel 100 --step 200", "%-%-na 1.6",
        "refractive index 1.515"},
    {"psf -o Y --index 13.3 --na 1 --wavelength 500 --pixel 100 --step 200", '%-%-index: "13.3"',
        "from 1 to 5"},
    {"psf -o O.tif --nx 65", "%-%-nx", "%-%-size"},
    {"psf -o O.tif --immersion oil", "%-%-immersion", "%-%-index"},
    {"stitch I I -o Z --overlap 900", "%-%-overlap is 900", "from 0 to 4", 1},
    {"stitch I none.npy -o Z", "cannot open 'none.npy'", "check the name", 1},
    {"stitch I I -o Z --overlap 2", "already exists", "%-%-overwrite", 1},
    {"stitch I I -o O.h5 --overlap auto", '"auto"', "without %-%-overlap it is found"},
    {"stitch I I -o O.h5 --overlap 50%", '"50%%"', "a number of slices"},
    {"stitch I I -o O.h5 --by z", '"z"', "did you mean positions"},
    {"stitch I I -o O.h5 --blend average", '"average"', "did you mean mean"},
    {"stitch I I -o O.h5 --device host", "%-%-device", "the work is done on the host"},
    {"stitch I I -o O.h5 --preview p.png", "%-%-preview", "reconstruct %-%-preview makes"},
    {"join S -o Z --device cuda:0", "%-%-device", "the work is done on the host"},
    {"stitch I I -o O.h5 --fusion linear", "%-%-fusion", "%-%-blend"},
    {"stitch I I -o O.h5 --method correlation", "%-%-method", "%-%-by"},
    {"join S -o Z", "is no part of a run", "moonbeam stitch", 1},
    {"join S -o O.h5 --overlap 2", "%-%-overlap", "moonbeam stitch %-%-overlap"},
    {"batch S --output-dir out", "%-%-output%-dir", "%-%-into FOLDER"},
    {"batch S --resume", "%-%-resume", "%-%-skip%-done"},
    {"batch S --dry-run", "%-%-dry%-run", "reconstruct %-%-plan"},
    {"simulate S --energy 20", "%-%-energy is 20 eV", "give %-%-energy 20000 for 20 keV"},
    {"simulate S --half-acquisition --span 180", "%-%-span is 180", "give 360"},
    {"simulate S --device gpu", '"gpu"', 'valid names are "host"'},
    {"simulate O.h5 --energy 20keV", '"20keV"', "give 20000: the unit is eV"},
    {"simulate O.h5 --distance 10cm", '"10cm"', "give 0.1: the unit is m"},
    {"simulate O.h5 --transmission 20%", '"20%%"', "a part of one: 0.2"},
    {"simulate O.h5 --cols 64", "%-%-cols", "%-%-size"},
    {"simulate O.h5 --projections 64", "%-%-projections", "%-%-angles"},
    {"simulate O.h5 --format nexus", '"nexus"', "did you mean nxtomo"},
    {"simulate -o O.h5", "%-o", "OUT, the name alone"},
    {"import_recipe O.lua none.conf", "too many: none.conf", "import_recipe none.conf %-o .*out.lua"},
    {"import_recipe none.conf --to O.lua", "%-%-to", "%-%-output"},
}

local LUA <const> = {
    {"mb.zeros({4, 5}, {device = 'gpu'})", '"gpu"', 'valid names are "host"'},
    {"mb.zeros({1e6, 1e6})", "3.638 TiB do not fit: [%d.]+ K?M?i?B live of a budget of [%d.]+ GiB, and ", "smaller chunks"},
    {"mb.gaussian_filter(mb.zeros {4, 5})", "'sigma', is missing", "give a table of numbers"},
    {"mb.gausian_filter(mb.zeros {4, 5}, 1)", "'gausian_filter'", "did you mean 'gaussian_filter'"},
    {"local a = mb.zeros {4, 5}; a:relase()", "'relase'", "did you mean 'release'"},
    {"local a = mb.zeros {4, 5}; a[1] = 3", "cannot be assigned", "use a view"},
    {"mb.tomo.fbp(mb.zeros {1, 30, 16}, mb.linspace(0, 180, 30))", "span 180 rad", "math.rad"},
    {"mb.tomo.fbp(mb.zeros {1, 30, 16}, {0, 1})", "angles has 2 numbers", "give 30"},
    {"mb.tomo.fbp(mb.zeros {1, 30, 16}, mb.tomo.angles(30), {filter = 'hanning'})", "'hanning'",
        "did you mean 'hamming'"},
    {"mb.tomo.fbp(mb.zeros {1, 30, 16}, mb.tomo.angles(30), {centre = 7})", "'centre'",
        "did you mean 'center'"},
    {"mb.tomo.FBP(mb.zeros {4, 5}, {0})", "'FBP'", "did you mean 'fbp'"},
    {"mb.fft.rfftn(mb.zeros({4, 4}, {dtype = 'u16'}))", "a is u16", "a:cast"},
    {"mb.images.read 'none.tif'", "none.tif", "check the name"},
    {"mb.images.write('x.jpg', mb.zeros {4, 4})", "x.jpg", "images are"},
    {"mb.view.save('x.jpg', mb.zeros {4, 4})", "x.jpg", "must end in .png"},
    {"mb.view.save('x.png', mb.zeros {2, 4, 4})", "has 3 axes", "take one slice"},
    {"mb.gaussian_filter(mb.zeros {4, 5}, {sigma = 1})", "names, and sigma is",
        "gaussian_filter%(..., sigma, {options}%)"},
    {"for _ in mb.zeros {4, 5} do end", "an array is not called", "a:slices%(%)"},
    {"local _ = mb.zeros {4, 5} // 2", "// is not for arrays", "a / b"},
    {"local _ = mb.zeros {4, 5} % 2", "%% is not for arrays", "mb.binary"},
    {"local _ = mb.zeros {4, 5} & 1", "no operators of bits", "arrays of 0 and 1"},
    {"local _ = mb.zeros {4, 5} .. 'x'", ".. is not for arrays", "mb.help%(\"concatenate\"%)"},
    {"local _ = mb.zeros {4, 5}.T", "'T'", "a:transpose%(%)"},
    {"local _ = mb.zeros {4, 5}.quux", "'quux'", "mb.help%(\"array\"%)"},
    {"mb.zeros {4, 5}:save 'x.tif'", "'save'", "mb.images.write%(name, a%)"},
    {"mb.recon 'scan.h5'", "mb.recon is a module", "mb.help%(\"recon\"%)"},
    {"mb.load 'scan.h5'", "'load'", "mb.scan.open"},
    {"mb.psf.gaussian(3)", "sigma is missing", "mb.help%(\"psf.gaussian\"%)"},
    {"mb.op.estimate 'ramp_filter'", "inputs must be a list", "not a missing value"},
    {"local _ = mb.ones({3}, {dtype = 'u16'}) * mb.ones {3}", "a is u16 and b is f32",
        "a:cast%(\"f32\"%)"},
    {"local a = mb.zeros {4, 5}; a.shape = {5, 4}", "an array's shape", "a:reshape"},
    {"local a = mb.zeros {4, 5}; a.sum()", "sum: ", "with a colon, as a:sum%(%)"},
    {"local _ = mb.zeros {4, 5}:sum 'x'", "axis is a string", "as a:sum%(1%)"},
    {"mb.zeros {4, 5}:item(1)", "1 indices for an array of 2", "one for each axis"},
    {"mb.zeros({4, 5}, 'u16')", "options must be a table", "{dtype = ...}"},
    {"mb.zeros()", "shape is missing", "{64, 512, 512}"},
    {"local _ = mb.ones {3} * mb.ones({3}, {dtype = 'u16'})", "a is f32 and b is u16",
        "b:cast%(\"f32\"%)"},
    {"local _ = mb.tomo.paganin", "mb.tomo has no 'paganin'", "step paganin"},
    {"local _ = mb.tomo.remove_stripes", "'remove_stripes'", "mb.stripes_all"},
    {"local _ = mb.gaussian_blur", "'gaussian_blur'", "mb.gaussian_filter"},
    {"local _ = mb.deconv.rl", "'rl'", "mb.deconv.richardson_lucy"},
    {"local _ = mb.sqrt", "'sqrt'", "a:sqrt%(%)"},
    {"local _ = mb.pipeline.run", "'run'", "mb.help%(\"pipeline\"%)"},
    {"mb.device 'gpu0'", "device: unknown device \"gpu0\"", "valid names"},
    {"mb.tomo.fbp(mb.zeros {1, 3, 4}, {0, 1, 2}, {device = 'host'})", "unknown option 'device'",
        "a:to%("},
    {"mb.deconv.richardson_lucy(mb.ones {3, 3}, mb.ones {3, 3}, 20)", "options are a table",
        "{iterations = ...}"},
}

local function files_of(text)
    return (text:gsub("%f[%w]([SNPIFKROYZ])%f[^%w]", function(letter)
        return shell:path(({S = "scan.h5", N = "two.h5", P = "plain.h5", I = "image.npy",
            F = "frame.npy", K = "psf.npy", R = "recipe.lua", O = "out",
            Y = "there.npy", Z = "two.h5"})[letter])
    end))
end

-- What is wrong with an answer, or nil.
local function problem_of(row, text, status, expected)
    local _, lines = text:gsub("\n", "")
    local _, last = text:find(row[2])
    return status ~= expected and "status " .. tostring(status)
        or lines ~= 1 and lines .. " lines"
        or not last and "does not name " .. row[2]
        or not text:find(row[3], last + 1) and "does not say " .. row[3]
        or (text:find("the option %w+_") or text:find("stack traceback", 1, true))
            and "speaks of Lua" or nil
end

describe("typical mistakes", function()
    setup(function()
        shell = commands.folder()
        commands.must("simulate.lua", shell:path "scan.h5"
            .. " --size 48 --rows 6 --angles 60 --quiet")
        commands.must("simulate.lua", shell:path "two.h5"
            .. " --size 32 --rows 3 --angles 40 --format nxtomo --quiet")
        local image <close> = mb.random({4, 12, 12}, {seed = 1})
        mb.npy.write(shell:path "image.npy", image)
        mb.npy.write(shell:path "frame.npy", image[1])
        mb.npy.write(shell:path "there.npy", image)
        local psf <close> = mb.ones {3, 3, 3}
        mb.npy.write(shell:path "psf.npy", psf)
        files.write(shell:path "recipe.lua",
            '{"flat_field", {"paganin", delta_beta = 100}, "minus_log", "fbp"}\n')
        local file <close> = mb.h5.create(shell:path "plain.h5")
        local frames <close> = mb.random({6, 4, 16}, {seed = 1})
        file:write("/frames", frames)
        file:finish()
    end)

    teardown(function()
        shell:remove()
    end)

    it("are 230 and more", function()
        assert.is_true(#SHELL + #LUA >= 230, #SHELL + #LUA)
    end)

    it("at a shell are answered by one line that names the thing and the remedy", function()
        local wrong = {}
        for _, row in ipairs(SHELL) do
            local text, status = helper.run_program(files_of(row[1]))
            local name = row[1]:match "^%S+"
            local problem = problem_of(row, text, status, row[4] or 2)
                or not text:find("^" .. name .. ": ") and "has another prefix" or nil
            wrong[#wrong + 1] = problem and ("%s\n    %s: %s"):format(row[1], problem, text) or nil
        end
        assert(#wrong == 0, table.concat(wrong, "\n"))
    end)

    it("come under the name of the command, once, in a dry run too", function()
        for _, flag in ipairs {"", "--plan ", "--ledger "} do
            local text = helper.run_program("--budget 1K " .. flag .. "simulate "
                .. shell:path "none.h5")
            assert.matches("^simulate: %d+ KiB do not fit[^\n]*\n$", text)
        end
    end)

    it("in Lua are answered by one line that names the thing and the remedy", function()
        local wrong = {}
        for _, row in ipairs(LUA) do
            local chunk = assert(load("local mb = require 'moonbeam' " .. row[1], "=typed"))
            local ok, err = pcall(chunk)
            local problem = ok and "no error"
                or problem_of(row, (tostring(err):match "^[^\n]*") .. "\n", 1, 1)
                or not tostring(err):find "^typed:1: " and "blames another line" or nil
            wrong[#wrong + 1] = problem and ("%s\n    %s: %s"):format(row[1], problem,
                tostring(err)) or nil
            mb.collect()
        end
        assert(#wrong == 0, table.concat(wrong, "\n"))
    end)
end)
