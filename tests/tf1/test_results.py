"""Results on larger arrays, against TensorFlow's.

Each row: an expression, then shape, element type and fingerprint of each result, written down from
TensorFlow 2.21 in its version 1 mode.
"""

# ruff: noqa: E501
import numpy as np
import pytest

import weft.tf1 as tf


def r(*shape):
    n = np.arange(int(np.prod(shape)))
    return (np.sin(n * 1.7 + len(shape)) * 1.3 + np.cos(n * 0.37)).astype(np.float32).reshape(shape)


NAMES = {
    "tf": tf, "np": np, "im": r(2, 7, 9, 4), "w": r(3, 2, 4, 6), "wd": r(3, 3, 4, 2),
    "im1": r(2, 11, 3), "w1": r(4, 3, 5), "im3": r(1, 5, 6, 4, 2), "w3": r(2, 3, 2, 2, 3),
    "wt": r(3, 3, 5, 4), "W": r(10, 4), "lg": r(3, 4), "lab": np.array([1, 0, 3]),
}  # fmt: skip


def fingerprint(array):
    flat = np.asarray(array, np.float64).ravel()
    return [flat.sum(), (flat * np.cos(np.arange(flat.size))).sum()]


ROWS = [
    ("tf.nn.conv2d(im,w,[1,1,1,1],'SAME')", [([2, 7, 9, 6], 'float32', [19.7241, 20.9366])]),
    ("tf.nn.conv2d(im,w,[1,2,3,1],'SAME')", [([2, 4, 3, 6], 'float32', [2.1866, -7.7916])]),
    ("tf.nn.conv2d(im,w,[1,2,2,1],'VALID')", [([2, 3, 4, 6], 'float32', [31.2881, -4.9604])]),
    ("tf.nn.conv2d(im,w,[1,1,1,1],'SAME',dilations=[1,2,2,1])", [([2, 7, 9, 6], 'float32', [21.918, 7.4602])]),
    ('tf.nn.conv2d(im,w,1,[[0,0],[2,1],[0,3],[0,0]])', [([2, 8, 11, 6], 'float32', [3.6875, -11.4403])]),
    ("tf.nn.conv1d(im1,w1,2,'SAME')", [([2, 6, 5], 'float32', [1.2024, -3.9262])]),
    ("tf.nn.conv1d(im1,w1,stride=3,padding='VALID')", [([2, 3, 5], 'float32', [30.3527, -6.1106])]),
    ("tf.nn.conv3d(im3,w3,[1,1,2,1,1],'SAME')", [([1, 5, 3, 4, 3], 'float32', [4.927, -2.9003])]),
    ("tf.nn.conv2d_transpose(im,wt,[2,14,18,5],[1,2,2,1],'SAME')", [([2, 14, 18, 5], 'float32', [41.6984, 25.8445])]),
    ("tf.nn.conv2d_transpose(im,wt,[2,15,19,5],[1,2,2,1],'VALID')", [([2, 15, 19, 5], 'float32', [24.9315, -21.3516])]),
    ("tf.nn.depthwise_conv2d(im,wd,[1,1,1,1],'SAME')", [([2, 7, 9, 8], 'float32', [40.3785, -5.1873])]),
    ("tf.nn.depthwise_conv2d(im,wd,[1,2,2,1],'VALID')", [([2, 3, 4, 8], 'float32', [-0.8154, -6.3892])]),
    ("tf.nn.depthwise_conv2d(im,wd,[1,1,1,1],'SAME',rate=[2,2])", [([2, 7, 9, 8], 'float32', [24.7564, 12.058])]),
    ("tf.nn.max_pool(im,[1,3,2,1],[1,2,2,1],'SAME')", [([2, 4, 5, 4], 'float32', [192.6753, 7.8869])]),
    ("tf.nn.avg_pool(im,[1,3,3,1],[1,2,2,1],'SAME')", [([2, 4, 5, 4], 'float32', [-1.2197, 2.8965])]),
    ("tf.nn.avg_pool(im,[1,3,3,1],[1,1,2,1],'VALID')", [([2, 5, 4, 4], 'float32', [0.3476, 0.5408])]),
    ("tf.nn.pool(im,[2,2],'AVG','SAME',strides=[2,1])", [([2, 4, 9, 4], 'float32', [-1.7881, 0.4265])]),
    ("tf.nn.pool(im1,[3],'MAX','VALID')", [([2, 9, 3], 'float32', [47.4322, -1.6626])]),
    ('list(tf.nn.fused_batch_norm(im,np.arange(1,5,dtype=np.float32),np.ones(4,np.float32)))', [([2, 7, 9, 4], 'float32', [504.0, -4.1083]), ([4], 'float32', [-0.0249, -0.014]), ([4], 'float32', [5.4209, 0.1598])]),
    ('tf.nn.fused_batch_norm(im,np.arange(1,5,dtype=np.float32),np.ones(4,np.float32),mean=np.ones(4,np.float32),variance=np.full(4,2,np.float32),is_training=False)[0]', [([2, 7, 9, 4], 'float32', [-390.4991, -5.0914])]),
    ('tf.nn.lrn(im,2,1.0,0.1,0.75)', [([2, 7, 9, 4], 'float32', [-2.6387, -0.577])]),
    ('tf.gather_nd(W,[[0,1],[9,3]])', [([2], 'float32', [-0.9912, -0.4236])]),
    ('tf.gather(W,[[0,1],[2,3]],axis=1)', [([10, 2, 2], 'float32', [2.4025, 0.5064])]),
    ('tf.gather(lg,[[0],[1],[3]],batch_dims=1)', [([3, 1], 'float32', [1.4133, 1.1446])]),
    ('tf.strided_slice(W,[1,3],[8,0],[2,-1])', [([4, 3], 'float32', [0.6402, -2.2725])]),
    ('tf.cumsum(W,0,exclusive=True,reverse=True)', [([10, 4], 'float32', [10.7052, -0.474])]),
    ('tf.one_hot([[0,2],[1,-1]],3,axis=1)', [([2, 3, 2], 'float32', [3.0, 1.1382])]),
    ('tf.losses.softmax_cross_entropy(np.eye(4,dtype=np.float32)[lab],lg,weights=[0.,1.,2.],label_smoothing=.1)', [([], 'float32', [0.9584, 0.9584])]),
    ('tf.losses.mean_squared_error(lg,lg*0.5,weights=np.array([[1.],[0.],[2.]],np.float32))', [([], 'float32', [0.6365, 0.6365])]),
    ('tf.losses.huber_loss(lg,lg*3.,reduction=tf.losses.Reduction.SUM)', [([], 'float32', [18.7877, 18.7877])]),
    ('tf.losses.absolute_difference(lg,lg*3.,reduction=tf.losses.Reduction.NONE)', [([3, 4], 'float32', [24.5313, -1.4764])]),
    ('tf.losses.sigmoid_cross_entropy(np.eye(4)[lab],lg,reduction=tf.losses.Reduction.MEAN,weights=2.0)', [([], 'float32', [0.6777, 0.6777])]),
    ('list(tf.nn.top_k(lg,2))', [([3, 2], 'float32', [4.8345, 1.562]), ([3, 2], 'int32', [11.0, -2.7427])]),
    ('tf.nn.in_top_k(lg,lab,2)', [([3], 'bool', [2.0, 0.1242])]),
    ('tf.clip_by_norm(lg,1.0,axes=[1])', [([3, 4], 'float32', [-0.4526, 0.626])]),
    ('list(tf.clip_by_global_norm([lg,W],1.0)[0])', [([3, 4], 'float32', [-0.094, 0.2486]), ([10, 4], 'float32', [0.2813, 0.0593])]),
    ('tf.clip_by_average_norm(lg,.01)', [([3, 4], 'float32', [-0.0229, 0.0606])]),
    ('tf.confusion_matrix([0,1,1,2],[0,1,2,2],3)', [([3, 3], 'int32', [4.0, 0.4845])]),
    ("list(tf.meshgrid([1,2],[3,4,5],[6,7],indexing='ij'))", [([2, 3, 2], 'int32', [18.0, -0.5902]), ([2, 3, 2], 'int32', [48.0, -6.1111]), ([2, 3, 2], 'int32', [78.0, -2.797])]),
    ('tf.tensordot(im,wt,[[3],[3]])', [([2, 7, 9, 3, 3, 5], 'float32', [24.9315, -15.5823])]),
    ("tf.einsum('bhwc,hd->bcd',im,np.ones((7, 3), np.float32))", [([2, 4, 3], 'float32', [-9.4058, 4.1394])]),
    ('tf.reverse(im,[1,-1])', [([2, 7, 9, 4], 'float32', [-3.1353, -18.5152])]),
    ('tf.sequence_mask([[1,3],[0,2]])', [([2, 2, 3], 'bool', [6.0, -2.1102])]),
    ('tf.matrix_band_part(lg,1,0)', [([3, 4], 'float32', [-1.3213, 3.8506])]),
    ('tf.matrix_set_diag(np.ones((3,3),np.float32),[1.,2.,3.])', [([3, 3], 'float32', [12.0, 0.3881])]),
    ('tf.roll(lg,[1,-2],[0,1])', [([3, 4], 'float32', [-0.803, 4.216])]),
    ('tf.norm(lg,ord=1,axis=1)', [([3], 'float32', [12.2656, 4.2683])]),
    ('tf.norm(lg,ord=np.inf)', [([], 'float32', [2.282, 2.282])]),
    ('tf.argmax(lg)', [([4], 'int64', [0.0, 0.0])]),
    ("tf.pad(lg,[[1,2],[2,1]],'SYMMETRIC')", [([6, 7], 'float32', [0.7673, 1.0589])]),
    ('tf.tile(lg,[2,3])', [([6, 12], 'float32', [-4.818, -1.303])]),
    ('list(tf.split(lg,[1,-1,2],1))', [([3, 1], 'float32', [2.1897, 2.9929]), ([3, 1], 'float32', [-3.4577, 0.4264]), ([3, 2], 'float32', [0.465, 1.1352])]),
    ('tf.range(10,0,-3)', [([4], 'int32', [22.0, 11.1275])]),
    ('tf.range(1.0,2.0,0.3)', [([4], 'float32', [5.8, -0.8444])]),
    ('tf.linspace(0.0,1.0,7)', [([7], 'float32', [3.5, 0.2171])]),
    ('tf.floormod([-5,5,-5],[3,-3,-3])', [([3], 'int32', [-2.0, 1.292])]),
    ('tf.truncatemod([-5,5,-5],[3,-3,-3])', [([3], 'int32', [-2.0, -0.0871])]),
    ('tf.truncatediv([-5,5,-5],[3,-3,-3])', [([3], 'int32', [-1.0, -1.9564])]),
    ('tf.floordiv([-5,5,-5],[3,-3,-3])', [([3], 'int32', [-3.0, -3.4968])]),
    ('tf.floordiv([-5.,5.,-5.],[3.,-3.,-3.])', [([3], 'float32', [-3.0, -3.4968])]),
    ('tf.round([0.5,1.5,2.5,-0.5])', [([4], 'float32', [4.0, 0.2483])]),
    ('tf.reduce_mean([1,2,4])', [([], 'int32', [2.0, 2.0])]),
    ('tf.where([True,False,True],lg,lg*0.)', [([3, 4], 'float32', [0.4235, 3.799])]),
    ('tf.nn.leaky_relu(lg,0.1)', [([3, 4], 'float32', [5.0779, 0.8355])]),
    ('tf.nn.embedding_lookup(W,[[0,1],[9,9]])', [([2, 2, 4], 'float32', [4.0295, 1.614])]),
    ('tf.losses.log_loss(np.abs(np.tanh(lg)),np.abs(np.tanh(lg*2)))', [([], 'float32', [0.6759, 0.6759])]),
]  # fmt: skip


@pytest.mark.parametrize("expression, expected", ROWS)
def test_results(session, expression, expected):
    found = session.run(eval(expression, NAMES))
    arrays = found if isinstance(found, list) else [found]
    assert len(arrays) == len(expected)
    for array, (shape, dtype, marks) in zip(arrays, expected, strict=True):
        assert (list(np.shape(array)), str(array.dtype)) == (shape, dtype)
        np.testing.assert_allclose(fingerprint(array), marks, rtol=1e-4, atol=2e-3)


def test_a_fingerprint_sees_a_change():
    a = r(3, 4)
    b = a.copy()
    b[1, 2], b[2, 2] = a[2, 2], a[1, 2]
    assert abs(fingerprint(a)[1] - fingerprint(b)[1]) > 0.1


CONVOLUTIONS = [
    lambda x, w, form: tf.nn.conv2d(x, w, at(form, 2, 1), "SAME", data_format=form),
    lambda x, w, form: tf.nn.conv2d(x, w, 1, pads(form), data_format=form),
    lambda x, w, form: tf.nn.max_pool(x, at(form, 3, 2), at(form, 2, 2), "SAME", data_format=form),
    lambda x, w, form: tf.nn.avg_pool(x, 3, 2, "SAME", data_format=form),
    lambda x, w, form: tf.nn.bias_add(x, np.arange(4, dtype=np.float32), data_format=form),
    lambda x, w, form: tf.nn.fused_batch_norm(
        x, np.ones(4, np.float32), np.ones(4, np.float32), data_format=form
    )[0],
    lambda x, w, form: tf.nn.depthwise_conv2d(
        x, r(3, 3, 4, 2), at(form, 1, 1), "VALID", data_format=form
    ),
]


def at(form, height, width):
    return [1, height, width, 1] if form == "NHWC" else [1, 1, height, width]


def pads(form):
    inner = [[2, 1], [0, 3]]
    return [[0, 0], *inner, [0, 0]] if form == "NHWC" else [[0, 0], [0, 0], *inner]


@pytest.mark.parametrize("build", CONVOLUTIONS)
def test_channels_first_is_channels_last_transposed(session, build):
    x = tf.placeholder(tf.float32, [None, 7, 9, 4])
    w = tf.constant(r(3, 2, 4, 6))
    last = build(x, w, "NHWC")
    first = build(tf.transpose(x, [0, 3, 1, 2]), w, "NCHW")
    assert first.shape.as_list()[1] == last.shape.as_list()[3]
    a, b = session.run([last, tf.transpose(first, [0, 2, 3, 1])], {x: NAMES["im"]})
    np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-5)


def test_what_convolutions_refuse():
    x, w = tf.zeros([1, 8, 8, 3]), tf.zeros([3, 3, 3, 4])
    with pytest.raises(ValueError, match="channels differ"):
        tf.nn.conv2d(x, tf.zeros([3, 3, 5, 4]), 1, "SAME")
    with pytest.raises(ValueError, match="SAME or VALID"):
        tf.nn.conv2d(x, w, 1, "FULL")
    with pytest.raises(ValueError, match="NHWC or NCHW"):
        tf.nn.conv2d(x, w, 1, "SAME", data_format="NHCW")
    with pytest.raises(ValueError, match="batch and channels"):
        tf.nn.conv2d(x, w, [2, 1, 1, 1], "SAME")
    with pytest.raises(ValueError, match="rank 4"):
        tf.nn.conv2d(x[0], w, 1, "SAME")


def test_one_hot_of_values_that_only_a_run_knows(session):
    on = tf.placeholder(tf.float32, [])
    rows = tf.one_hot([1, 0, 5], 2, on_value=on, off_value=on * 0.5)
    assert rows.dtype == tf.float32 and rows.shape.as_list() == [3, 2]
    assert session.run(rows, {on: 4.0}).tolist() == [[2.0, 4.0], [4.0, 2.0], [2.0, 2.0]]
    columns = tf.one_hot([1, 0], 2, off_value=on - 1.0, axis=0)
    assert session.run(columns, {on: 4.0}).tolist() == [[3.0, 1.0], [1.0, 3.0]]
    assert tf.gradients(rows, on) == [None]
