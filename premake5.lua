-- The build description of Moonbeam, for two generations of Premake:
--
--   premake4 --file=premake5.lua gmake      Debian's premake4 (4.3)
--   premake5 gmake                          Premake 5 (gmake2 on its older alphas)
--   make -C build/make config=release
--
-- scripts/build does both steps. Everything that is generated goes under build/.
--
-- Where the two generations differ:
--   * 4.3 knows neither workspace/filter nor buildcommands; 5 has no configuration(). The shim
--     below hides that. Compiler flags are plain buildoptions, so both emit the same ones.
--   * 4.3 compiles .cu files as if they were C++ with nvcc as the C++ compiler (all other code is
--     C, so nothing else uses it); 5 has a custom build command for each .cu file.
--   * In 4.3 pre-build steps are not ordered before the objects under make -j, and object
--     directories are not either. So this script itself writes the generated sources and makes
--     the directories.

local premake5 = not (_PREMAKE_VERSION or "4"):match("^4")

-- ---------------------------------------------------------------------------------------------
-- Options

newoption {
    trigger = "no-cuda",
    description = "Build the host backend only, even where nvcc is found",
}

newoption {
    trigger = "cuda-arch",
    value = "LIST",
    description = "GPU architectures of the CUDA plug-in (default 75,80,90); "
        .. "the last one is also added as PTX",
}

local action = _ACTION or ""
local generating = action:match("^gmake") ~= nil

-- ---------------------------------------------------------------------------------------------
-- Small helpers, in the Lua 5.1 subset that both generations have

-- The first line that a command prints, or nil.
local function output_of(command)
    local pipe = io.popen(command .. " 2>/dev/null")
    local line = pipe:read("*l")
    pipe:close()
    return line ~= "" and line or nil
end

local function is_file(name)
    local f = io.open(name, "rb")
    if f then
        f:close()
    end
    return f ~= nil
end

local function read_file(name)
    local f = io.open(name, "rb")
    if not f then
        return nil
    end
    local text = f:read("*a")
    f:close()
    return text
end

-- Writes only what has changed, so that an unchanged list does not trigger a rebuild.
-- Returns true if the file was written.
local function write_if_changed(name, text)
    if read_file(name) == text then
        return false
    end
    os.mkdir(path.getdirectory(name))
    local f = assert(io.open(name, "wb"))
    f:write(text)
    f:close()
    return true
end

-- Matches of several patterns, sorted: the order of a directory listing must not matter.
local function sorted_files(...)
    local found = {}
    for _, pattern in ipairs({ ... }) do
        for _, name in ipairs(os.matchfiles(pattern)) do
            table.insert(found, name)
        end
    end
    table.sort(found)
    return found
end

local function base_name(file)
    return (file:match("([^/]+)$"):gsub("%.%w+$", ""))
end

-- ---------------------------------------------------------------------------------------------
-- Sources

local runtime_files = sorted_files("runtime/**.c")
local binding_files = sorted_files("bindings/**.c")
local cuda_files = sorted_files("cuda/**.cu")
local mpi_files = sorted_files("mpi/*.c")

-- Objects are named after the base name alone, and 4.3 silently drops one of two equal ones. (That
-- holds within a project; fft.c and fft.cu may stand side by side, being in different ones.)
local seen = {}
for _, list in ipairs({ runtime_files, binding_files, cuda_files, mpi_files }) do
    for _, file in ipairs(list) do
        local name = path.getname(file)
        if seen[name] then
            error(("two sources are called '%s': %s and %s; rename one of them"):format(
                name, seen[name], file), 0)
        end
        seen[name] = file
    end
end

local core_files = {}
for _, file in ipairs(binding_files) do
    if not base_name(file):match("^main") then -- the program alone has main.c and main_*.c
        table.insert(core_files, file)
    end
end

-- ---------------------------------------------------------------------------------------------
-- Registries: one line for each op_<name>.c, for each <name>.cu that belongs to one, and for each
-- record_<name>.c of a device that can be planned for

-- The operators by name: runtime/ops/<family>/op_<name>.c.
local function operators()
    local found = {}
    for _, file in ipairs(sorted_files("runtime/ops/**.c")) do
        local family, name = file:match("^runtime/ops/(%w+)/op_([%w_]+)%.c$")
        if name then
            table.insert(found, { name = name, family = family })
        end
    end
    table.sort(found, function(a, b)
        return a.name < b.name
    end)
    return found
end

if generating then
    local op_lines, cuda_lines = {}, {}
    for _, op in ipairs(operators()) do
        table.insert(op_lines, ("MB_OP(%s, %s)\n"):format(op.family, op.name))
        if is_file(("cuda/%s/%s.cu"):format(op.family, op.name)) then
            table.insert(cuda_lines, "MB_CUDA_OP(" .. op.name .. ")\n")
        end
    end
    local record_lines = {}
    for _, file in ipairs(sorted_files("runtime/device/planned/record_*.c")) do
        table.insert(record_lines, "MB_DEVICE_RECORD(" .. base_name(file):sub(8) .. ")\n")
    end
    local head = "/* Written by premake5.lua from the file names in %s. */\n"
    write_if_changed("build/gen/record_registry.inc",
        head:format("runtime/device/planned") .. table.concat(record_lines))
    write_if_changed("build/gen/op_registry.inc",
        head:format("runtime/ops") .. table.concat(op_lines))
    write_if_changed("build/gen/cuda_registry.inc",
        head:format("runtime/ops and cuda") .. table.concat(cuda_lines))
end

-- ---------------------------------------------------------------------------------------------
-- Tools and system libraries

local multiarch = output_of("gcc -print-multiarch") or "x86_64-linux-gnu"
local system_lib = "/usr/lib/" .. multiarch
local hdf5_include = "/usr/include/hdf5/serial"
local lua_include = "/usr/include/lua5.4"
local lua_archive = system_lib .. "/liblua5.4.a"

local nvcc = not _OPTIONS["no-cuda"] and output_of("scripts/find_nvcc") or nil
if #cuda_files == 0 then
    nvcc = nil
end

local cuda_flags = {}
local cuda_libdir
if nvcc then
    local root = output_of("readlink -f '" .. nvcc .. "'"):gsub("/bin/nvcc$", "")
    cuda_libdir = is_file(root .. "/lib64/libcudart_static.a") and root .. "/lib64"
        or is_file(root .. "/lib/libcudart_static.a") and root .. "/lib"
        or system_lib
    -- Compressed, templated kernels for several architectures take a sixth of the space.
    cuda_flags = { "-O3", "-std=c++17", "-Xfatbin -compress-all" }
    -- From CUDA 12.8 on there is a mode that takes a fifth less again.
    if output_of("'" .. nvcc .. "' --help | grep -c compress-mode") ~= "0" then
        table.insert(cuda_flags, "--compress-mode=size")
    end
    -- GPUs of 8.6, 8.7 and 8.9 run the machine code for 8.0: no source knows a difference.
    local last, count = nil, 0
    for arch in (_OPTIONS["cuda-arch"] or "75,80,90"):gmatch("[^,%s]+") do
        if not arch:match("^%d+[af]?$") then
            error("--cuda-arch takes a list such as 80,90, not '" .. arch .. "'", 0)
        end
        table.insert(cuda_flags, ("-gencode arch=compute_%s,code=sm_%s"):format(arch, arch))
        last, count = arch, count + 1
    end
    if not last then
        error("--cuda-arch names no architecture", 0)
    end
    table.insert(cuda_flags, ("-gencode arch=compute_%s,code=compute_%s"):format(last, last))
    -- Line numbers for profilers. For six architectures they would be half the plug-in.
    if count == 1 then
        table.insert(cuda_flags, "-lineinfo")
    end
    table.insert(cuda_flags,
        "-Xcompiler -fPIC,-Wall,-fno-exceptions,-fno-threadsafe-statics,-fvisibility=hidden")
end

-- ---------------------------------------------------------------------------------------------
-- Configurations. Debug comes first (the default of a bare make in both generations);
-- scripts always name one.

local configurations_of_build = { "debug", "release", "sanitize" }

-- A number that does not fit the integer it becomes is undefined too; gcc checks it only if told.
-- Three checks of each pointer are left out: null, object-size and pointer-overflow. An access by
-- such a pointer is one that ASan reports, and its own check of the access stays.
local sanitizers = "-fsanitize=address,undefined,float-cast-overflow"
    .. " -fno-sanitize=null,object-size,pointer-overflow"
    .. " -fno-sanitize-recover=undefined,float-cast-overflow"

-- No -ffast-math: results must not depend on how a compiler reorders a sum. -fno-math-errno only
-- drops what nobody reads, and lets loops with sqrtf be vectorised.
local compile_flags = {
    debug = { "-O0", "-g" },
    release = { "-O3", "-g", "-fno-math-errno" },
    sanitize = { "-O2", "-g1", "-fno-omit-frame-pointer", sanitizers },
}

local link_flags = {
    debug = {},
    release = {},
    sanitize = { sanitizers },
}

-- Messages are cut to fit their fixed buffers on purpose, so that is no warning. Nobody replaces
-- the functions of a file by others when a program starts, so they may be inlined within it.
local c_flags = {
    "-std=gnu11", "-fPIC", "-fno-semantic-interposition", "-fopenmp",
    "-Wall", "-Wextra", "-Wshadow", "-Wstrict-prototypes", "-Wmissing-prototypes", "-Wvla",
    "-Wno-format-truncation",
}

-- Release is what people run, so it gets the short path.
local function output_root(config)
    return config == "release" and "build" or "build/" .. config
end

-- ---------------------------------------------------------------------------------------------
-- The shim

local function select_config(config)
    if premake5 then
        filter(config and { "configurations:" .. config } or {})
    else
        configuration(config and { config } or {})
    end
end

if premake5 then
    workspace "moonbeam"
else
    solution "moonbeam"
end
configurations(configurations_of_build)
location "build/make"
select_config(nil)
if premake5 then
    symbols "On"
else
    flags { "Symbols" } -- without it 4.3 strips what it links
end

local started -- the project that was started last: {name =, dir =}

local function remove_output(name, target)
    os.remove(target .. "/lib" .. name .. ".a")
    os.remove(target .. "/" .. name)
    os.remove(target .. "/" .. name .. ".so")
end

-- Starts a project: kind, where its output goes, its flags, and what else decides its content.
-- `flags_list` is used by both generations; `dir` is the output folder under the root.
local function start_project(name, project_kind, dir, files_list, flags_list)
    started = { name = name, dir = dir }
    project(name)
    kind(project_kind)
    language "C"
    location "build/make"
    files(files_list)
    buildoptions(flags_list)
    for _, config in ipairs(configurations_of_build) do
        local objects = "build/obj/" .. config .. "/" .. name
        local target = output_root(config) .. "/" .. dir
        select_config(config)
        objdir((premake5 and "!" or "") .. objects)
        targetdir(target)
        local own = name == "moonbeam_cuda" and {} or compile_flags[config]
        buildoptions(own)

        if generating then
            -- Make knows the age of files, not the flags they were compiled with nor which
            -- members an archive should have: start afresh when either changes.
            local flags_text = table.concat(flags_list, "\n") .. "\n" .. table.concat(own, "\n")
                .. "\n" .. (name == "moonbeam_cuda" and nvcc or "") .. "\n"
            local stamp = objects .. ".flags"
            if read_file(stamp) ~= flags_text then
                os.rmdir(objects)
                write_if_changed(stamp, flags_text)
            end
            if write_if_changed(objects .. ".files", table.concat(files_list, "\n") .. "\n") then
                remove_output(name, target)
            end
            os.mkdir(objects)
            os.mkdir(target)
        end
    end
    select_config(nil)
end

-- How the project that was started last is linked. Make does not know the age of this either.
local function link_with(libraries, options)
    local name = started.name
    links(libraries)
    linkoptions(options)
    for _, config in ipairs(configurations_of_build) do
        local own = name == "moonbeam_cuda" and {} or link_flags[config]
        local text = table.concat(libraries, "\n") .. "\n" .. table.concat(options, "\n") .. "\n"
            .. table.concat(own, "\n") .. "\n"
        select_config(config)
        linkoptions(own)
        if generating and write_if_changed("build/obj/" .. config .. "/" .. name .. ".link", text)
        then
            remove_output(name, output_root(config) .. "/" .. started.dir)
        end
    end
    select_config(nil)
end

-- The archive of a library where the compiler has one, else the library as it is.
local function archive_of(name)
    local file = output_of("gcc -print-file-name=lib" .. name .. ".a")
    return file and file:find("/", 1, true) and ":lib" .. name .. ".a" or name
end

local function runtime_libraries(fftw_threads, openmp)
    return { "runtime", "hdf5_serial", "png", "expat", "z", fftw_threads, "fftw3f", openmp,
        "pthread", "dl", "m" }
end
local shared_openmp = runtime_libraries("fftw3f_omp", "gomp")
-- The program must set the wait policy before libgomp reads it, and a shared libgomp reads it
-- before anything of the program runs (bindings/program/main_process.c). FFTW threads are those of
-- libgomp: both or none.
local own_openmp = archive_of("gomp") ~= "gomp" and archive_of("fftw3f_omp") ~= "fftw3f_omp"
    and runtime_libraries(archive_of("fftw3f_omp"), archive_of("gomp")) or shared_openmp

-- ---------------------------------------------------------------------------------------------
-- runtime: the C core

start_project("runtime", "StaticLib", "lib", runtime_files, c_flags)
includedirs { "runtime", "build/gen", hdf5_include }

-- ---------------------------------------------------------------------------------------------
-- moonbeam: the interpreter. Lua is inside, with its whole API exported, so that C modules such
-- as lfs, which do not link Lua themselves, find it.

start_project("moonbeam", "ConsoleApp", "bin", binding_files, c_flags)
includedirs { "runtime", "bindings", "build/gen", hdf5_include, lua_include }
link_with(own_openmp, {
    "-fopenmp", "-Wl,-E", "-Wl,--as-needed", "-Wl,--exclude-libs,libgomp.a:libfftw3f_omp.a",
    "-Wl,--whole-archive " .. lua_archive .. " -Wl,--no-whole-archive",
})

-- ---------------------------------------------------------------------------------------------
-- status_test, pool_test, op_test and h5_hostile: what specs of the error record, the pool,
-- operators and HDF5 files cannot do from Lua. The specs run them.

for _, source in ipairs({ "spec/core/status_test.c", "spec/memory/pool_test.c",
    "spec/ops/op_test.c", "spec/files/h5/h5_hostile.c" }) do
    start_project(base_name(source), "ConsoleApp", "bin", { source }, c_flags)
    includedirs { "runtime", hdf5_include }
    link_with(shared_openmp, { "-fopenmp", "-Wl,--as-needed" })
end

-- ---------------------------------------------------------------------------------------------
-- core: the same bindings as a module for a stock lua5.4, which brings Lua itself. Its own
-- symbols are bound to itself, in case a program has another copy.

start_project("core", "SharedLib", "lib/moonbeam", core_files, c_flags)
targetprefix ""
targetname "core"
targetextension ".so"
includedirs { "runtime", "bindings", "build/gen", hdf5_include, lua_include }
link_with(shared_openmp, {
    "-fopenmp", "-Wl,--as-needed", "-Wl,-Bsymbolic", "-Wl,--exclude-libs,ALL",
})

-- ---------------------------------------------------------------------------------------------
-- libmoonbeam: the C API (runtime/moonbeam.h) as a shared library. It exports the API alone: what
-- comes from the archive of the runtime is hidden.

start_project("libmoonbeam", "SharedLib", "lib", sorted_files("runtime/*.c"), c_flags)
targetprefix ""
targetname "libmoonbeam"
targetextension ".so"
includedirs { "runtime" }
link_with(shared_openmp, {
    "-fopenmp", "-Wl,--as-needed", "-Wl,-Bsymbolic", "-Wl,-z,defs", "-Wl,--exclude-libs,ALL",
    "-Wl,-soname,libmoonbeam.so",
})

-- ---------------------------------------------------------------------------------------------
-- moonbeam_cuda: the CUDA backend, a plug-in beside the program. Compiled by nvcc, but linked by
-- gcc: with exceptions off nothing needs libstdc++, and the CUDA runtime is static. libcuda and
-- libcufft are found at run time, so they must not be linked.

if nvcc then
    start_project("moonbeam_cuda", "SharedLib", "bin", cuda_files, cuda_flags)
    targetprefix ""
    targetname "moonbeam_cuda"
    targetextension ".so"
    includedirs { "runtime", "cuda", "build/gen" }
    libdirs { cuda_libdir }
    link_with({ "cudart_static", "rt", "pthread", "dl", "m" },
        { "-Wl,--as-needed", "-Wl,-z,defs", "-Wl,--exclude-libs,ALL" })

    if premake5 then
        filter { "files:**.cu" }
        buildmessage "%{file.name}"
        buildcommands {
            nvcc .. " $(ALL_CPPFLAGS) " .. table.concat(cuda_flags, " ")
                .. ' -o "$@" -MF "$(@:%.o=%.d)" -c "$<"',
        }
        buildoutputs { "%{cfg.objdir}/%{file.basename}.o" }
        filter {}
    else
        local is_cpp = path.iscppfile
        function path.iscppfile(name)
            return path.getextension(name) == ".cu" or is_cpp(name)
        end
        premake.gcc.platforms.Native.cxx = nvcc
        -- 4.3 adds -fPIC to every shared library, which nvcc takes only by -Xcompiler.
        local get_cflags = premake.gcc.getcflags
        function premake.gcc.getcflags(cfg)
            if cfg.targetname == "moonbeam_cuda" then
                return { "-g" }
            end
            return get_cflags(cfg)
        end
    end
elseif generating then
    -- A plug-in left from an earlier build would be loaded, and would not match.
    for _, config in ipairs(configurations_of_build) do
        os.remove(output_root(config) .. "/bin/moonbeam_cuda.so")
        os.remove("build/obj/" .. config .. "/moonbeam_cuda.files")
    end
    os.remove("build/make/moonbeam_cuda.make")
end

-- ---------------------------------------------------------------------------------------------
-- moonbeam_mpi: ranks and messages by MPI, a plug-in beside the program, of the MPI whose mpicc is
-- here. The program loads it when a launcher has started it, and is not linked with MPI.

-- The words of a compiler's command line that begin like this.
local function words_of(line, ...)
    local words = {}
    for word in line:gmatch("%S+") do
        for _, head in ipairs({ ... }) do
            if word:sub(1, #head) == head then
                table.insert(words, word)
                break
            end
        end
    end
    return words
end

local mpicc_line = output_of("mpicc -show")
if mpicc_line then
    local flags_list = words_of(mpicc_line, "-I", "-pthread")
    for _, flag in ipairs(c_flags) do
        table.insert(flags_list, flag)
    end
    start_project("moonbeam_mpi", "SharedLib", "bin", mpi_files, flags_list)
    targetprefix ""
    targetname "moonbeam_mpi"
    targetextension ".so"
    includedirs { "runtime" }
    link_with({}, words_of(mpicc_line, "-L", "-l", "-Wl,", "-pthread"))
elseif generating then
    for _, config in ipairs(configurations_of_build) do
        os.remove(output_root(config) .. "/bin/moonbeam_mpi.so")
        os.remove("build/obj/" .. config .. "/moonbeam_mpi.files")
    end
    os.remove("build/make/moonbeam_mpi.make")
end
