-- Clock, terminal, file names and Ctrl-C, in C (lua_system.c).
return require("moonbeam.core").system
