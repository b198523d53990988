--- Where a scan's file states the size of its pixels, in order of precedence: that at the sample
-- comes before that of the camera. A place has path; over, where the magnification is that its size
-- is divided by (without it the place says nothing); with, what must be in the file too; camera,
-- the size is that of the camera; note, a warning that it gives.

local pixel_sizes = {}

local OPTICS <const> = "the pixel size is the detector's: optical magnification is not in it"

--- The places of an NXtomo entry. Where a file has real_x_pixel_size, that is the camera's, and
-- x_pixel_size is at the sample.
function pixel_sizes.of_nxtomo(sample, detector)
    local real, magnification = detector .. "/real_x_pixel_size", detector .. "/magnification"
    return {
        {path = sample .. "/x_pixel_size"},
        {path = detector .. "/x_magnified_pixel_size"},
        {path = detector .. "/x_pixel_size", with = real},
        {path = detector .. "/x_pixel_size", over = magnification, without = real},
        {path = real, over = magnification},
        {path = detector .. "/x_pixel_size", without = real, camera = true},
        {path = real, camera = true, note = OPTICS},
    }
end

local DETECTOR <const> = "/measurement/instrument/detector/"
local CAMERA <const> = "/measurement/instrument/camera/pixel_size"
local MAGNIFICATION <const> = "/measurement/instrument/detection_system/objective/magnification"

--- Those of Data Exchange.
pixel_sizes.of_exchange = {
    {path = DETECTOR .. "actual_pixel_size_x"},
    {path = "/measurement/instrument/detection_system/objective/resolution"},
    {path = DETECTOR .. "pixel_size", over = MAGNIFICATION},
    {path = DETECTOR .. "pixel_size_x", over = MAGNIFICATION},
    {path = CAMERA, over = MAGNIFICATION},
    {path = DETECTOR .. "pixel_size", camera = true},
    {path = DETECTOR .. "pixel_size_x", camera = true, note = OPTICS},
    {path = CAMERA, camera = true, note = OPTICS},
}

return pixel_sizes
