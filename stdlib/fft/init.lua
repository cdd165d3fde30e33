-- stdlib/fft/init.lua: lt.fft, Fourier transforms: PyTorch's torch.fft.

local catalogue = require "ltrain.core.catalogue"

-- Options by place.
local ONE <const>, SEVERAL <const> = "n dim norm", "s dim norm"
local FRAMES <const> = "hop_length win_length window center "

return catalogue("ltrain.fft", "fft", {
  stft = { "istft", "stft" },
  transforms_1d = { "fft", "ifft", "rfft", "irfft", "hfft", "ihfft" },
  transforms_nd = { "fft2", "ifft2", "rfft2", "irfft2", "hfft2", "ihfft2", "fftn", "ifftn", "rfftn",
    "irfftn", "hfftn", "ihfftn" },
  windows = { "hamming_window", "hann_window" },
  frequencies = { "fftfreq", "rfftfreq", "fftshift", "ifftshift" },
}, {
  fft = ONE, ifft = ONE, rfft = ONE, irfft = ONE, hfft = ONE, ihfft = ONE,
  fft2 = SEVERAL, ifft2 = SEVERAL, rfft2 = SEVERAL, irfft2 = SEVERAL, hfft2 = SEVERAL,
  ihfft2 = SEVERAL, fftn = SEVERAL, ifftn = SEVERAL, rfftn = SEVERAL, irfftn = SEVERAL,
  hfftn = SEVERAL, ihfftn = SEVERAL, fftfreq = "d", rfftfreq = "d", fftshift = "dim",
  ifftshift = "dim", hann_window = "periodic", hamming_window = "periodic",
  stft = FRAMES .. "pad_mode normalized onesided", istft = FRAMES .. "normalized onesided length",
})
