--- What a scan's file may state about its geometry and optics: one row a statement. The engine
-- (statements/init.lua) reads them in this order; the table of docs/formats.md has the same rows.
--
-- A row has name; nxtomo and exchange, where it is looked for, "{detector}" and the like being
-- groups that are found by class (nil: the layout has no such statement); kind, how it is read (see
-- statements/reading.lua); gives, the field of scan.says, or several statements' common field, of
-- which the first that is there is taken and the others are compared; done and option, for the
-- documentation: what is done, and the option that overrules.

local HALF <const> = "`--half-acquisition`, `--no-half-acquisition`"
local ENERGY <const> = "option `energy` of the step"
local DISTANCE <const> = "option `distance` of the step"
local FLIP <const> = "`--flip`, step `flip`"
local SHIFTS <const> = "`--vertical-shifts`, step `horizontal_shift`"

return {
    {name = "half_acquisition", nxtomo = {"{detector}/half_acquisition"}, kind = "flag",
        gives = "half_acquisition", option = HALF,
        done = "true: reconstructed as a half acquisition, which needs a whole turn"},
    {name = "field_of_view", nxtomo = {"{detector}/field_of_view"}, kind = "field_of_view",
        gives = "half_acquisition", option = HALF,
        done = "`Half`: reconstructed as a half acquisition, which needs a whole turn"},
    {name = "transformations", nxtomo = {"{detector_transformations}"}, kind = "transformations",
        gives = "flip", option = FLIP,
        done = "180 degrees about a lateral, vertical or beam axis: frames are flipped up-down, "
            .. "left-right or both; other rotations are warned of"},
    {name = "x_flipped, y_flipped", nxtomo = {"{detector}/x_flipped", "{detector}/y_flipped"},
        kind = "flipped", gives = "flip", option = FLIP,
        done = "true: frames are flipped left-right (x) or up-down (y)"},
    {name = "x_rotation_axis_pixel_position",
        nxtomo = {"{detector}/x_rotation_axis_pixel_position"},
        exchange = {"/process/acquisition/rotation/rotation_axis"}, kind = "number",
        gives = "axis", option = "`--center`",
        done = "where searches by trials begin, and which of two columns that match alike is "
            .. "the axis; compared with the axis that is found or given, as a column and as a "
            .. "distance from the middle"},
    {name = "estimated_cor_from_motor", nxtomo = {"{detector}/estimated_cor_from_motor"},
        kind = "number", gives = "axis", option = "`--center`",
        done = "the same, as a distance from the middle"},
    {name = "incident_energy", nxtomo = {"{beam}/incident_energy", "{sample}/beam/incident_energy",
        "{monochromator}/energy"}, exchange = {"/measurement/instrument/monochromator/energy"},
        kind = "energy", gives = "energy", option = ENERGY,
        done = "default of the phase steps"},
    {name = "incident_wavelength", nxtomo = {"{beam}/incident_wavelength",
        "{monochromator}/wavelength"}, kind = "wavelength", gives = "energy", option = ENERGY,
        done = "converted to an energy: default of the phase steps"},
    {name = "distance", nxtomo = {"{detector}/distance"}, exchange = {
        "/measurement/instrument/detector/distance",
        "/measurement/instrument/detector_distance",
        "/measurement/instrument/detector_motor_stack/setup/detector_distance",
        "/measurement/instrument/sample_motor_stack/detector_distance",
        "/measurement/instrument/camera_motor_stack/setup/camera_distance",
        "/measurement/instrument/detector_motor_stack/setup/z",
        "/measurement/instrument/detector_motor_stack/detector_z",
        "/measurement/instrument/camera_motor_stack/setup/camera_z"},
        kind = "length", gives = "distance", option = DISTANCE,
        done = "default of the phase steps; with the distance of the source, z1 z2 / (z1 + z2)"},
    {name = "propagation_distance", nxtomo = {"{sample}/propagation_distance"}, kind = "length",
        gives = "propagation_distance", option = DISTANCE,
        done = "default of the phase steps, before `distance`"},
    {name = "source distance", nxtomo = {"{source}/distance"},
        exchange = {"/measurement/instrument/source/distance"}, kind = "length",
        gives = "source_distance", option = "option `source_distance` of the step",
        done = "enters the distance of the phase steps; rays that are more than a pixel from "
            .. "parallel are warned of"},
    {name = "x_translation", nxtomo = {"{sample}/x_translation"}, exchange = {
        "/measurement/instrument/sample_motor_stack/setup/x"}, kind = "translation",
        gives = "translations", option = SHIFTS,
        done = "warned of where it moves the projections by half a pixel or more"},
    {name = "y_translation", nxtomo = {"{sample}/y_translation"}, exchange = {
        "/measurement/instrument/sample_motor_stack/setup/y"}, kind = "translation",
        gives = "translations", option = SHIFTS,
        done = "warned of where it moves the projections by half a pixel or more"},
    {name = "z_translation", nxtomo = {"{sample}/z_translation"}, exchange = {
        "/measurement/instrument/sample_motor_stack/setup/z"}, kind = "translation",
        gives = "translations", option = SHIFTS,
        done = "warned of where it moves the projections by half a pixel or more"},
    {name = "translations of the sample", nxtomo = {"{sample_transformations}"}, kind = "moved",
        gives = "translations", option = SHIFTS,
        done = "each one is warned of where it moves the projections by half a pixel or more"},
    {name = "translations of the detector", nxtomo = {"{detector_transformations}"},
        kind = "moved", gives = "translations", option = SHIFTS,
        done = "each one is warned of where it moves the projections by half a pixel or more"},
    {name = "vector of rotation_angle", nxtomo = {"{angles}"}, kind = "downward",
        gives = "reversed_rotation",
        option = "`--reverse-rotation`, `--no-reverse-rotation`, step `reverse_rotation`",
        done = "an axis that points down, against the vertical one of the coordinates: angles "
            .. "count as their negatives"},
    {name = "tomo_n", nxtomo = {"{detector}/tomo_n"},
        exchange = {"/process/acquisition/rotation/num_angles"}, kind = "number",
        gives = "announced", option = "none; `--allow-missing` for frames that were never written",
        done = "fewer projections than it says are warned of"},
}
