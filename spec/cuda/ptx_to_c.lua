-- spec/cuda/ptx_to_c.lua: C of the kernels of one value in a PTX file, so that what nvcc made of
-- our arithmetic can be compared with the CPU's bits where there is no GPU.
--
--   lua5.4 spec/cuda/ptx_to_c.lua FILE.ptx >FILE.c
--
-- A kernel `name(const T *v, T *y)` becomes `void name(const void *, void *)`, and a row {name,
-- run, fused, loose} of the table ptx_functions. loose: how many sums of a product have no rounding
-- mode in PTX; ptxas may still fuse these, and `fused` is the function with all of them fused.
-- Kernels with approximate instructions, which no C has, are left out (those of fmod), and those
-- that call functions (the gamma functions, zeta, erfinv). Any other unknown instruction is an
-- error.

local HEAD <const> = [[
#include <math.h>
#include <stdint.h>
#include <string.h>
#include "cuda/ptx_functions.h"
static inline float F(uint32_t u) { float f; memcpy(&f, &u, 4); return f; }
static inline uint32_t U(float f) { uint32_t u; memcpy(&u, &f, 4); return u; }
static inline double D(uint64_t u) { double f; memcpy(&f, &u, 8); return f; }
static inline uint64_t L(double f) { uint64_t u; memcpy(&u, &f, 8); return u; }
static inline int32_t toward_zero(double f) {
  return isnan(f) ? 0 : f >= INT32_MAX ? INT32_MAX : f <= INT32_MIN ? INT32_MIN : (int32_t)f;
}
]]

local TYPES <const> = { pred = "int", b16 = "uint16_t", b32 = "uint32_t", b64 = "uint64_t",
                        f32 = "float", f64 = "double" }

-- Types of instructions as C's.
local C <const> = {
  f32 = "float", f64 = "double", s32 = "int32_t", u32 = "uint32_t", b32 = "uint32_t",
  s64 = "int64_t", u64 = "uint64_t", b64 = "uint64_t", pred = "int",
}

local COMPARES <const> = {
  eq = "%s == %s", ne = "%s != %s", lt = "%s < %s", le = "%s <= %s", gt = "%s > %s",
  ge = "%s >= %s",
  -- Also true with NaN.
  neu = "!(%s == %s)", ltu = "!(%s >= %s)", leu = "!(%s > %s)",
  gtu = "!(%s <= %s)", geu = "!(%s < %s)",
}

local BINARY <const> = {
  add = "+", sub = "-", mul = "*", ["mul.lo"] = "*", div = "/", ["and"] = "&", ["or"] = "|",
  xor = "^",
}

local CALLS <const> = {
  fma = "fma", sqrt = "sqrt", abs = "fabs", neg = "-",
}

local ROUNDED <const> = { rni = "rint", rmi = "floor", rzi = "trunc", rpi = "ceil" }

local function operand(text)
  local single = text:match "^0[fF](%x%x%x%x%x%x%x%x)$"
  if single then return ("F(0x%su)"):format(single) end
  local double = text:match "^0[dD](%x+)$"
  if double then return ("D(0x%sull)"):format(double) end
  return (text:gsub("%%", ""))
end

local function is_float(kind) return kind == "f32" or kind == "f64" end
local function suffix(kind) return kind == "f32" and "f" or "" end

-- Bits moved between registers of different kinds; `to` and `from` are their names.
local function move(to, from)
  local a, b = to:match "^%a+", from:match "^(%a+)%d+$" or "literal"
  if a == "f" and b == "r" then return ("%s = F(%s);"):format(to, from) end
  if a == "r" and (b == "f" or from:find "^F%(") then return ("%s = U(%s);"):format(to, from) end
  if a == "fd" and b == "rd" then return ("%s = D(%s);"):format(to, from) end
  if a == "rd" and (b == "fd" or from:find "^D%(") then return ("%s = L(%s);"):format(to, from) end
  return ("%s = %s;"):format(to, from)
end

local function compare(p, d, a, b)
  local kind <const> = p[#p]
  if p[2] == "num" or p[2] == "nan" then
    return ("%s = %s(isnan(%s) || isnan(%s));"):format(d, p[2] == "num" and "!" or "", a, b)
  end
  local how = COMPARES[p[2]]
  if not how then return nil end
  local x, y = ("(%s)%s"):format(C[kind], a), ("(%s)%s"):format(C[kind], b)
  return ("%s = %s;"):format(d, how:format(x, y))
end

local function convert(p, d, a)
  local to, from, how = p[#p - 1], p[#p], ROUNDED[p[2]]
  if how and to == from then return ("%s = %s%s(%s);"):format(d, how, suffix(to), a) end
  -- To integers the nearest there is; NaN gives 0.
  if how == "trunc" and to == "s32" then return ("%s = (uint32_t)toward_zero(%s);"):format(d, a) end
  if is_float(to) and C[from] then return ("%s = (%s)(%s)%s;"):format(d, C[to], C[from], a) end
end

-- The statement of an instruction, nil: unknown.
local function statement(op, args)
  local p, v = {}, {}
  for part in op:gmatch "[^.]+" do p[#p + 1] = part end
  for k, text in ipairs(args) do v[k] = operand(text) end
  local name, kind, d = p[1], p[#p], v[1]
  if name == "mov" or name == "cvta" then return move(d, v[2]) end
  if name == "setp" then return compare(p, d, v[2], v[3]) end
  if name == "cvt" then return convert(p, d, v[2]) end
  if name == "selp" then return ("%s = %s ? %s : %s;"):format(d, v[4], v[2], v[3]) end
  if name == "not" then
    return ("%s = %s%s;"):format(d, kind == "pred" and "!" or "~", v[2])
  end
  if name == "copysign" then
    return ("%s = copysign%s(%s, %s);"):format(d, suffix(kind), v[3], v[2])
  end
  if name == "rcp" then return ("%s = 1 / %s;"):format(d, v[2]) end
  if name == "shl" or name == "shr" then
    local sign = name == "shl" and "<<" or ">>"
    return ("%s = (%s)%s %s %s;"):format(d, C[kind], v[2], sign, v[3])
  end
  if name == "min" or name == "max" then
    return ("%s = (%s)%s %s (%s)%s ? %s : %s;"):format(d, C[kind], v[2],
      name == "min" and "<" or ">", C[kind], v[3], v[2], v[3])
  end
  local sign = BINARY[name .. "." .. tostring(p[2])] or BINARY[name]
  if sign then return ("%s = %s %s %s;"):format(d, v[2], sign, v[3]) end
  local call = CALLS[name]
  if call == "-" then return ("%s = -%s;"):format(d, v[2]) end
  if call then
    return ("%s = %s%s(%s);"):format(d, call, suffix(kind), table.concat(v, ", ", 2))
  end
end

local function memory(op, args)
  local size = C[op:match "[^.]+$"]
  if op:find "^ld%.param" then
    return ("%s = (uint64_t)(uintptr_t)param_%s;"):format(operand(args[1]),
      args[2]:match "_param_(%d+)%]$")
  end
  local place = (args[1]:match "^%[" and args[1] or args[2]):match "^%[(.*)%]$"
  local base, offset = place:match "^%%(%w+)%+?(%-?%d*)$"
  local at = ("(void *)(uintptr_t)(%s + %s)"):format(base, offset == "" and "0" or offset)
  if op:find "^ld" then
    return ("memcpy(&%s, %s, sizeof(%s));"):format(operand(args[1]), at, size)
  end
  return ("{ %s kept = %s; memcpy(%s, &kept, sizeof kept); }"):format(size, operand(args[2]), at)
end

-- A sum of which an operand is a product {a, b}, fused; nil: none is.
local function fuse(op, args, products)
  local name, kind = op:match "^(%a+)%.(f%d+)$"
  if name ~= "add" and name ~= "sub" then return nil end
  local first, second = products[args[2]], products[args[3]]
  local one = first or second
  if not one then return nil end
  local rest = operand(first and args[3] or args[2])
  local minus <const> = name == "sub"
  return ("%s = fma%s(%s%s, %s, %s%s);"):format(operand(args[1]), suffix(kind),
    minus and not first and "-" or "", operand(one[1]), operand(one[2]),
    minus and first and "-" or "", rest)
end

-- C of a kernel's lines, and how many sums are loose; nil: it is left out.
local function translate(name, body, fused)
  if body:find "%.approx" or body:find "%scall%." then return nil end
  local lines, products, loose = {}, {}, 0
  local function say(...) lines[#lines + 1] = string.format(...) end
  for line in body:gmatch "[^\n]+" do
    local kind, prefix, n = line:match "%.reg %.(%w+)%s+%%(%a+)<(%d+)>"
    local label = line:match "^%$([%w_]+):"
    local no, guard, rest = line:match "^%s*@(!?)%%(p%d+)%s+(.*);$"
    local op, list = (rest or line:match "^%s*([a-z].*);$" or ""):match "^(%S+)%s*(.*)$"
    if kind then
      local names = {}
      for k = 1, tonumber(n) - 1 do names[k] = prefix .. k .. " = 0" end
      say("  %s %s;", TYPES[kind], table.concat(names, ", "))
    elseif label then
      say("%s:;", label)
    elseif op then
      local args, made = {}
      for one in list:gmatch "[^,%s]+" do args[#args + 1] = one end
      if op:find "^bra" then
        made = ("goto %s;"):format(args[1]:sub(2))
      elseif op == "ret" then
        made = "return;"
      elseif op:find "^ld%." or op:find "^st%." then
        made = memory(op, args)
      else
        made = statement(op, args)
      end
      if not made then error(("ptx_to_c: %s: no rule for: %s"):format(name, line)) end
      if op == "mul.f32" or op == "mul.f64" then products[args[1]] = { args[2], args[3] } end
      local other = fuse(op, args, products)
      if other then loose = loose + 1 end
      if other and fused then made = other end
      say("  %s%s", guard and ("if (%s%s) "):format(no, guard) or "", made)
    end
  end
  return table.concat(lines, "\n"), loose
end

local path <const> = assert(arg[1], "usage: ptx_to_c.lua FILE.ptx")
local file <close> = assert(io.open(path))
local text, rows = file:read "a", {}
print(HEAD)
for name, body in text:gmatch "%.entry ([%w_]+)%(.-%)%s*(%b{})" do
  local code, loose = translate(name, body)
  if code then
    local head <const> = "static void %s_%s(const void *param_0, void *param_1) {\n%s\n}"
    print(head:format("ptx", name, code))
    if loose > 0 then print(head:format("fused", name, (translate(name, body, true)))) end
    rows[#rows + 1] = ('  {"%s", ptx_%s, %s_%s, %d},'):format(name, name,
      loose > 0 and "fused" or "ptx", name, loose)
  end
end
print(("const ptx_function ptx_functions[] = {\n%s\n  {0, 0, 0, 0},\n};"):format(
  table.concat(rows, "\n")))
