-- spec/host/deb_spec.lua: the Debian packages: what they depend on; how they install below a folder
-- that is taken for the root, run from there, and leave nothing when they are removed.
-- tags: exhaustive, slow, unsanitized
local shell = require "spec.build.shell"

local BUILD <const> = os.getenv("LT_BUILD")
local EXHAUSTIVE <const> = os.getenv "LT_EXHAUSTIVE" == "1"
local SANITIZED <const> = (os.getenv("LT_SANITIZE") or "") ~= ""

describe("a Debian package", function()
  local folder, root, version, architecture

  -- dpkg as anybody, with a database of its own; scripts of packages find an ldconfig that does
  -- nothing, since the folder is not where the system looks for libraries.
  local function dpkg(arguments)
    return shell.run("PATH=%s/bin:$PATH:/usr/sbin:/sbin dpkg --root=%s --force-not-root "
      .. "--force-depends --force-script-chrootless %s", folder, root, arguments)
  end

  local function field(name, package)
    return (shell.need("dpkg-deb -f %s/%s_%s_%s.deb %s", folder, package, version, architecture,
      name):gsub("\n", ""))
  end

  local function needs_packages()
    if not BUILD then pending("LT_BUILD names no build folder") end
    if SANITIZED then pending("sanitized libraries are not packed") end
    if not folder then pending("dpkg, dpkg-dev or file is not installed") end
  end

  setup(function()
    if not BUILD or SANITIZED then return end
    if shell.run("command -v dpkg dpkg-deb dpkg-shlibdeps file") ~= 0 then return end
    folder = shell.need("mktemp -d"):match "%S+"
    root = folder .. "/root"
    local packed = EXHAUSTIVE and "gzip" or "none" -- which takes half as long
    shell.need("cpack --config %s/CPackConfig.cmake -G DEB -B %s -D "
      .. "CPACK_DEBIAN_COMPRESSION_TYPE=%s", BUILD, folder, packed)
    version = shell.need("%s/ltrain --version", BUILD):match "%d+%.%d+%.%d+"
    architecture = shell.need("dpkg --print-architecture"):match "%S+"
    shell.need("mkdir -p %s/bin %s/var/lib/dpkg/info %s/var/lib/dpkg/updates", folder, root, root)
    shell.need("touch %s/var/lib/dpkg/status %s/bin/ldconfig && chmod +x %s/bin/ldconfig", root,
      folder, folder)
  end)
  teardown(function()
    if folder then shell.need("rm -rf %s", folder) end
  end)

  it("depends on what the guide lists, and on no MPI", function()
    needs_packages()
    local file <close> = assert(io.open("docs/guide/installing.md"))
    local listed = file:read("a"):match "only needs these libraries:.-apt%-get install ([^\n]+)"
    local depends = ", " .. field("Depends", "ltrain") .. ","
    for name in listed:gmatch "%S+" do
      assert.matches(", " .. name .. " ", depends, 1, true)
    end
    assert.is_nil(depends:find("mpi", 1, true), depends)
  end)

  it("keeps what needs MPI apart", function()
    needs_packages()
    if shell.run("test -e %s/backends/ltrain_mpi.so", BUILD) ~= 0 then
      pending("this build has no MPI")
    end
    assert.matches("ltrain (= " .. version .. "),", field("Depends", "ltrain-mpi"), 1, true)
    assert.matches("libopenmpi", field("Depends", "ltrain-mpi"), 1, true)
    assert.matches("/ltrain_mpi.so\n", shell.need("dpkg-deb -c %s/ltrain-mpi_%s_%s.deb", folder,
      version, architecture), 1, true)
  end)

  it("keeps what needs UCX apart", function()
    needs_packages()
    if shell.run("test -e %s/backends/ltrain_ucx.so", BUILD) ~= 0 then
      pending("this build has no UCX")
    end
    assert.matches("ltrain (= " .. version .. "),", field("Depends", "ltrain-ucx"), 1, true)
    assert.matches("libucx0", field("Depends", "ltrain-ucx"), 1, true)
    assert.matches("/ltrain_ucx.so\n", shell.need("dpkg-deb -c %s/ltrain-ucx_%s_%s.deb", folder,
      version, architecture), 1, true)
  end)

  it("has no symbols for debuggers", function()
    needs_packages()
    shell.need("dpkg-deb -x %s/ltrain_%s_%s.deb %s/unpacked", folder, version, architecture, folder)
    local sections = shell.need("find %s/unpacked -name '*.a' -o -type f -name '*.so*' -o -type f "
      .. "-name 'ltrain' -o -name ltrain-worker | xargs -r objdump -h", folder)
    assert.matches("libltrain%.a", sections)
    assert.is_nil(sections:find(".debug_info", 1, true))
  end)

  it("installs, runs, and leaves nothing when it is removed", function()
    needs_packages()
    local status, out = dpkg(("-i %s/ltrain_%s_%s.deb"):format(folder, version, architecture))
    assert.equal(0, status, out)
    assert.equal("tensor([1., 1., 1.])\n",
      shell.need("%s/usr/bin/ltrain -e 'print(lt.ones(3))'", root))
    assert.equal("ok\n", shell.need("LUA_CPATH='%s/usr/lib/lua/5.4/?.so' lua5.4 -e "
      .. "'require \"ltrain\" print \"ok\"'", root))
    assert.equal(0, (shell.run("test -e %s/usr/lib/libltrain.so.0 -a -e %s/usr/include/ltrain.h "
      .. "-a -e %s/usr/share/man/man1/ltrain.1", root, root, root)))
    -- A machine with the package alone has no other .pc file, and a compiler builds hosts there.
    shell.need("cc -std=c11 examples/embed/host.c -o %s/host $(PKG_CONFIG_LIBDIR="
      .. "%s/usr/lib/pkgconfig pkg-config --cflags --libs ltrain)", folder, root)
    -- Again, as an upgrade does; then away, with its configuration.
    status, out = dpkg(("-i %s/ltrain_%s_%s.deb"):format(folder, version, architecture))
    assert.equal(0, status, out)
    status, out = dpkg "-P ltrain"
    assert.equal(0, status, out)
    assert.equal("", shell.need("find %s -mindepth 1 -not -path '%s/var*'", root, root))
    assert.is_nil(shell.need("find %s/var", root):find("ltrain", 1, true))
  end)
end)
