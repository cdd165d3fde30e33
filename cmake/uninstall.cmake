# cmake/uninstall.cmake: removes the files that MANIFEST names, and the folders that are empty then.
#
# DESTDIR in the environment goes before each, as it did at the installation.
cmake_minimum_required(VERSION 3.21)
if(NOT EXISTS ${MANIFEST})
  message(FATAL_ERROR "uninstall: nothing was installed from this build: no ${MANIFEST}")
endif()
file(STRINGS ${MANIFEST} files ENCODING UTF-8)
list(LENGTH files n)
set(folders "")
foreach(path IN LISTS files)
  file(REMOVE "$ENV{DESTDIR}${path}")
  cmake_path(GET path PARENT_PATH folder)
  while(NOT folder MATCHES "^/?$" AND NOT folder IN_LIST folders)
    list(APPEND folders ${folder})
    cmake_path(GET folder PARENT_PATH folder)
  endwhile()
endforeach()

# A folder sorts before what is in it. Only those called ltrain are ours to remove.
list(SORT folders ORDER DESCENDING)
foreach(folder IN LISTS folders)
  file(GLOB left "$ENV{DESTDIR}${folder}/*")
  if(folder MATCHES "/ltrain(/|$)" AND NOT left)
    file(REMOVE_RECURSE "$ENV{DESTDIR}${folder}")
  endif()
endforeach()
message(STATUS "uninstall: ${n} files removed")
