#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A TensorFlow workload for tranche: a Keras application (or "cnn") in inference or training.

    tranche bench one -m resnet50 --batch 8 -S 3g -- \\
        python3 adapters/tensorflow_workload.py --model ResNet50 --batch 8

Runs on the one CUDA device that is visible, else on the CPU. Run with tensorflow-cpu 2.21 (PyPI;
tests/peers/test_tensorflow.sh); on CUDA it is not tested.
"""
import os
import sys

import workload

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")  # its start-up messages


def make_model(tf, name, size):
    if name == "cnn":  # the same layers as the PyTorch adapter's
        layers = tf.keras.layers
        return tf.keras.Sequential([
            layers.Conv2D(32, 3, padding="same", activation="relu"),
            layers.Conv2D(64, 3, strides=2, padding="same", activation="relu"),
            layers.Conv2D(128, 3, strides=2, padding="same", activation="relu"),
            layers.GlobalAveragePooling2D(), layers.Dense(10)])
    if not hasattr(tf.keras.applications, name):
        raise ValueError(f"keras.applications has no model {name}")
    make = getattr(tf.keras.applications, name)
    return make(weights=None, input_shape=(size, size, 3), classifier_activation=None)


def load(options):
    import tensorflow as tf

    threads = int(os.environ.get("OMP_NUM_THREADS", "1"))
    tf.config.threading.set_intra_op_parallelism_threads(threads)
    tf.config.threading.set_inter_op_parallelism_threads(1)
    tf.random.set_seed(0)
    gpus = tf.config.list_physical_devices("GPU")
    for gpu in gpus:  # else the first process takes all of the slice's memory
        tf.config.experimental.set_memory_growth(gpu, True)
    training = options.task == "training"
    model = make_model(tf, options.model, options.size)
    images = tf.random.normal((options.batch, options.size, options.size, 3))
    classes = model(images, training=False).shape[1]
    target = tf.random.uniform((options.batch,), maxval=classes, dtype=tf.int32)
    optimizer = tf.keras.optimizers.SGD(learning_rate=0.01, momentum=0.9)
    loss_of = tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True)

    @tf.function
    def infer():
        return model(images, training=False)

    @tf.function
    def train():
        with tf.GradientTape() as tape:
            loss = loss_of(target, model(images, training=True))
        gradients = tape.gradient(loss, model.trainable_variables)
        optimizer.apply_gradients(zip(gradients, model.trainable_variables))
        return loss

    def step():  # .numpy() waits for the device
        if training:
            return float(train().numpy())
        infer().numpy()
        return None

    def peak():
        return tf.config.experimental.get_memory_info("GPU:0")["peak"] if gpus else None

    return {
        "framework": "tensorflow", "version": tf.__version__,
        "device": "cuda" if gpus else "cpu", "name": gpus[0].name if gpus else "cpu",
        "step": step, "wait": lambda: None, "peak": peak,
    }


if __name__ == "__main__":
    sys.exit(workload.main(__doc__.splitlines()[0], load))
