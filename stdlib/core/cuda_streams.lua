--- stdlib/core/cuda_streams.lua: lt.cuda.Stream and lt.cuda.Event: concurrent work on a GPU, and
--- its timing.
--
-- Tensors may be used on any stream: work on the same memory is always done in the order in which
-- it was called. Streams let work on different memory run concurrently.
local c = require "ltrain.c"
local class = require "ltrain.core.class"
local config = require "ltrain.core.config"
local errors = require "ltrain.core.errors"

local runtime <const> = c.runtime
local streams = {}

-- A queue of a GPU's work. There are a few for each GPU, which are given out in turn.
local Stream = class.extend(nil, "Stream")
-- A position of a stream.
local Event = class.extend(nil, "Event")

local objects <const> = setmetatable({}, { __mode = "v" }) -- by handle: one object a stream

local function object_of(device, handle)
  local stream = objects[handle]
  if not stream then
    stream = setmetatable({ device = device, _handle = handle }, Stream)
    objects[handle] = stream
  end
  return stream
end

-- The stream of a GPU's operations now.
function streams.current(device)
  return object_of(device, runtime.current_stream(device))
end

-- A stream of its own.
function streams.new(device) return object_of(device, runtime.new_stream(device)) end

local function check(value, kind, where)
  if getmetatable(value) == kind then return value end
  errors.blame("%s: needs a %s: got %s", where, kind.__name, errors.show(value))
end

-- Makes it the stream of operations on its device; returns the one that was.
function streams.set(stream, where)
  local before = streams.current(check(stream, Stream, where).device)
  runtime.set_stream(stream.device, stream._handle)
  return before
end

--- Makes work issued to this stream later wait for `event`.
function Stream:wait_event(event)
  check(event, Event, "wait_event")
  if not event._position then return end -- was not recorded
  runtime.stream_wait(self.device, self._handle, event._stream._handle, event._position)
end

--- Makes later work wait for all current work of `stream`.
function Stream:wait_stream(stream)
  self:wait_event(check(stream, Stream, "wait_stream"):record_event())
end

--- Records `event`, by default a new one, in this stream; returns it.
function Stream:record_event(event)
  event = event == nil and Event() or check(event, Event, "record_event")
  event:record(self)
  return event
end

--- Waits until all work of the stream is complete.
function Stream:synchronize() self:record_event():synchronize() end

--- Whether all work of the stream is complete.
function Stream:query() return self:record_event():query() end

local EVENT <const> = {
  enable_timing = { type = "boolean", default = false, doc = "for elapsed_time" },
}

function Event:init(options)
  local timed = config.check(options, EVENT, "cuda.Event").enable_timing
  self._timer = timed and runtime.timer() or nil
end

--- Records the event in `stream`, by default the current stream.
function Event:record(stream)
  stream = stream == nil and streams.current "cuda" or check(stream, Stream, "record")
  self._stream = stream
  if self._timer then runtime.record_timer(stream.device, stream._handle, self._timer) end
  self._position = runtime.record_event(stream.device, stream._handle)
end

--- Makes work issued later to `stream`, by default the current stream, wait for the event.
function Event:wait(stream)
  (stream == nil and streams.current "cuda" or check(stream, Stream, "wait")):wait_event(self)
end

--- Whether the work before the event is complete; true if it was not recorded.
function Event:query()
  local at = self._stream
  return at == nil or runtime.event_done(at.device, at._handle, self._position)
end

--- Waits until the work before the event is complete.
function Event:synchronize()
  local at = self._stream
  if at then runtime.wait_event(at.device, at._handle, self._position) end
end

--- Milliseconds between this event and `later`. Both need `enable_timing` and must be complete:
--- call `synchronize` of the later one first.
function Event:elapsed_time(later)
  for _, event in ipairs { self, check(later, Event, "elapsed_time") } do
    if not event._timer then
      errors.blame("elapsed_time: this event measures no time: write Event{enable_timing = true}")
    elseif not event._position then
      errors.blame("elapsed_time: an event was not recorded")
    end
  end
  local milliseconds = runtime.elapsed(self._timer, later._timer)
  if not milliseconds then
    errors.blame("elapsed_time: the events have not come yet: call synchronize of the later one")
  end
  return milliseconds
end

streams.Stream, streams.Event = Stream, Event

return streams
