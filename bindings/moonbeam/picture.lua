-- PNG files, in C (lua_picture.c).
return require("moonbeam.core").picture
