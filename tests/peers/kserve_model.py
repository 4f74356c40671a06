# SPDX-License-Identifier: Apache-2.0
"""A runtime of MLServer for ONNX files: what test_mlserver.sh measures `tranche bench http` on.

MLServer has no runtime for ONNX of its own; this one gives the model's own names, datatypes and
sizes as metadata and answers with what ONNX Runtime says."""
import onnxruntime
from mlserver import MLModel, types
from mlserver.codecs import NumpyCodec

DATATYPES = {
    "tensor(float)": "FP32",
    "tensor(double)": "FP64",
    "tensor(int32)": "INT32",
    "tensor(int64)": "INT64",
}


def describe(values):
    """Metadata of a graph's inputs or outputs; sizes that the model leaves open are -1."""
    return [
        types.MetadataTensor(
            name=value.name,
            datatype=DATATYPES[value.type],
            shape=[size if isinstance(size, int) else -1 for size in value.shape],
        )
        for value in values
    ]


class OnnxModel(MLModel):
    async def load(self):
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = 1
        self.session = onnxruntime.InferenceSession(
            self.settings.parameters.uri, options, providers=["CPUExecutionProvider"]
        )
        self.inputs = describe(self.session.get_inputs())
        self.outputs = describe(self.session.get_outputs())
        return True

    async def predict(self, payload):
        feeds = {given.name: NumpyCodec.decode_input(given) for given in payload.inputs}
        names = [output.name for output in self.outputs]
        results = self.session.run(names, feeds)
        return types.InferenceResponse(
            id=payload.id,
            model_name=self.name,
            outputs=[NumpyCodec.encode_output(name, result) for name, result in zip(names, results)],
        )
