"""TensorFlow Probability as a witness, where it is installed: the same parameters in its own flows.

It is no dependency of this project. `pip install tensorflow-probability tf-keras` beside it brings it in.
"""

from typing import Any

import numpy as np
import pytest

from dkef.core.arrays import Array
from dkef.core.streams import rng_for
from dkef.models.flows.density import EPSILON, FlowModel
from tests.models.flow_examples import example

try:
    import tensorflow as tf
    from tensorflow_probability import bijectors as tfb
    from tensorflow_probability import distributions as tfd
except Exception as error:  # it refuses some versions of TensorFlow and Keras by whatever exception comes first
    pytest.skip(f"TensorFlow Probability does not import: {error}", allow_module_level=True)

D = 4


def tfp_network(model: FlowModel, prefix: str, heads: int) -> Any:
    """TensorFlow Probability's own autoregressive network, with the weights of ours."""
    network = tfb.AutoregressiveNetwork(
        params=heads, event_shape=[D], hidden_units=[12, 12], activation="tanh", dtype="float64"
    )
    network.build([None, D])
    names = [f"{prefix}.{kind}{layer}" for layer in range(3) for kind in ("weight", "bias")]
    weights = [model.parameters[name] for name in names]
    # Its outputs are laid out [D, heads], ours [kinds, D, K]; a mixture's heads are [kinds, K].
    kinds = 2 if prefix.startswith("layer") else 3
    outputs = np.arange(heads * D).reshape(kinds, D, -1).transpose(1, 0, 2).ravel()
    network.set_weights([*weights[:4], weights[4][:, outputs], weights[5][outputs]])
    return network


def autoregressive(model: FlowModel, layer: int) -> Any:
    """x from u: theirs is x = u exp(log_scale) + shift, ours u = (x - t) exp(a)."""
    network = tfp_network(model, f"layer{layer}", 2)

    def shift_and_log_scale(x: Any) -> tuple[Any, Any]:
        heads = network(x)
        return heads[..., 0], -0.5 * heads[..., 1]

    return tfb.MaskedAutoregressiveFlow(shift_and_log_scale)


def coupling(model: FlowModel, layer: int) -> Any:
    """Theirs passes the leading coordinates; a permutation brings ours to the front and back."""
    passes = model.orders[layer] == 1
    permutation = np.argsort(~passes, kind="stable")

    def dense(x: Any, part: str, activate: Any) -> Any:
        prefix = f"layer{layer}.{part}"
        w0, w1, w2 = (model.parameters[f"{prefix}.weight{k}"] for k in range(3))
        b0, b1, b2 = (model.parameters[f"{prefix}.bias{k}"] for k in range(3))
        rows, columns = np.flatnonzero(passes), np.flatnonzero(~passes)
        hidden = activate(activate(x @ w0[rows] + b0) @ w1 + b1)
        return hidden @ w2[:, columns] + b2[columns]

    def shift_and_log_scale(x: Any, _: int) -> tuple[Any, Any]:
        return dense(x, "shift", tf.nn.relu), dense(x, "scale", tf.tanh)

    flow = tfb.RealNVP(num_masked=int(passes.sum()), shift_and_log_scale_fn=shift_and_log_scale)
    return tfb.Chain([tfb.Permute(np.argsort(permutation)), flow, tfb.Permute(permutation)])


def batch_norm(model: FlowModel, layer: int) -> Any:
    parameters = {
        key.split(".")[1]: value for key, value in model.parameters.items() if key.startswith(f"layer{layer}.")
    }
    deviation = np.sqrt(parameters["variance"] + EPSILON)
    chain = [
        tfb.Shift(parameters["mean"]),
        tfb.Scale(deviation / np.exp(parameters["log_gain"])),
        tfb.Shift(-parameters["offset"]),
    ]
    return tfb.Chain(chain)


def mixture_log_prob(model: FlowModel, u: Any) -> Any:
    heads = tf.reshape(tfp_network(model, "base", 12)(u), [-1, D, 3, 4])
    mixture = tfd.MixtureSameFamily(
        tfd.Categorical(logits=heads[:, :, 0]), tfd.Normal(heads[:, :, 1], tf.exp(-0.5 * heads[:, :, 2]))
    )
    return tf.reduce_sum(mixture.log_prob(u), axis=1)


def tfp_log_prob(model: FlowModel, x: Array) -> Array:
    layers = []
    for layer in range(model.shape.layers):
        layers.append((coupling if model.shape.transform == "coupling" else autoregressive)(model, layer))
        if model.shape.batch_norm:
            layers.append(batch_norm(model, layer))
    flow = tfb.Chain(layers) if layers else tfb.Identity()
    u = flow.inverse(tf.constant(x))
    if model.shape.components:
        log_base = mixture_log_prob(model, u)
    else:
        log_base = tfd.MultivariateNormalDiag(tf.zeros(D, tf.float64)).log_prob(u)
    log_prob: Array = (log_base + flow.inverse_log_det_jacobian(tf.constant(x), event_ndims=1)).numpy()
    return log_prob


@pytest.mark.parametrize("name", ["made", "made_mog", "real_nvp", "maf", "maf_mog"])
def test_tensorflow_probability_gives_the_same_log_density(name):
    model = example(name, D, degrees="sequential")
    x = rng_for("test", "tfp").standard_normal((7, D))
    # Its Keras layers compute in float32; Real NVP, which has none, in float64.
    rtol = 1e-12 if name == "real_nvp" else 1e-6
    np.testing.assert_allclose(model.log_density(x), tfp_log_prob(model, x), rtol=rtol)
