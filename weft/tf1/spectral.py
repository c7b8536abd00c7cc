"""`tf.spectral`: Fourier and cosine transforms, under their name before `tf.signal`."""

from weft import exports as _exports
from weft.tf1.signal import dct as dct
from weft.tf1.signal import fft as fft
from weft.tf1.signal import fft2d as fft2d
from weft.tf1.signal import fft3d as fft3d
from weft.tf1.signal import idct as idct
from weft.tf1.signal import ifft as ifft
from weft.tf1.signal import ifft2d as ifft2d
from weft.tf1.signal import ifft3d as ifft3d
from weft.tf1.signal import irfft as irfft
from weft.tf1.signal import irfft2d as irfft2d
from weft.tf1.signal import irfft3d as irfft3d
from weft.tf1.signal import rfft as rfft
from weft.tf1.signal import rfft2d as rfft2d
from weft.tf1.signal import rfft3d as rfft3d

_exports.gather(globals())
