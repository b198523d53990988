-- HDF5 files, in C (lua_h5.c).
return require("moonbeam.core").h5
