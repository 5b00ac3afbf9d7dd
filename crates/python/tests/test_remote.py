"""Memory of devices: contexts and tensors of GPU, where OpenCL is here, and what CPU says."""

import numpy as np
import pytest

import carafe as ov


@pytest.fixture
def context(core):
    if not any(name.startswith("GPU") for name in core.available_devices):
        pytest.skip("there is no OpenCL device here")
    return core.create_context("GPU", {})


def test_cpu_has_no_memory_of_its_own(core):
    with pytest.raises(RuntimeError, match="no memory of its own"):
        core.create_context("CPU", {})


def test_a_tensor_of_a_device_is_copied_to_and_from_the_host(context, image):
    remote = context.create_tensor(ov.Type.f32, ov.Shape([2, 3]), {})
    assert isinstance(remote, ov.RemoteTensor) and isinstance(remote, ov.Tensor)
    assert (remote.get_device_name(), list(remote.shape), remote.element_type) == (context.get_device_name(), [2, 3], ov.Type.f32)
    remote.copy_from(ov.Tensor(image))
    host = ov.Tensor(ov.Type.f32, [2, 3])
    remote.copy_to(host)
    np.testing.assert_array_equal(host.data, image)


def test_a_tensor_of_a_device_has_no_array(context):
    with pytest.raises(RuntimeError, match="copy_to"):
        context.create_tensor(ov.Type.f32, [2, 3], {}).data


def test_tensors_of_another_shape_are_not_copied(context, image):
    remote = context.create_tensor(ov.Type.f32, [6], {})
    with pytest.raises(RuntimeError, match="cannot be copied"):
        remote.copy_from(ov.Tensor(image))


def test_an_inference_reads_and_writes_memory_of_the_device(core, context, relu, image):
    compiled = core.compile_model(relu, context)
    read, written = (context.create_tensor(ov.Type.f32, [2, 3], {}) for _ in range(2))
    read.copy_from(ov.Tensor(image))
    request = compiled.create_infer_request()
    request.set_input_tensor(read)
    request.set_output_tensor(written)
    request.infer()
    host = ov.Tensor(ov.Type.f32, [2, 3])
    written.copy_to(host)
    np.testing.assert_array_equal(host.data, np.maximum(image, 0))


def test_a_model_on_a_device_with_a_driver_is_refused_after_a_fork(core, context, relu, image):
    import os

    compiled = core.compile_model(relu, context)
    pid = os.fork()
    if pid == 0:
        code = 1
        try:
            for use in (lambda: compiled(image), lambda: core.compile_model(relu, "GPU"), lambda: core.compile_model(relu, "AUTO")):
                with pytest.raises(RuntimeError, match="does not come along into the child"):
                    use()
            code = 0 if core.compile_model(relu, "CPU")(image)[0].sum() == 12 else 2
        finally:
            os._exit(code)
    assert os.waitpid(pid, 0)[1] == 0


def test_a_context_says_where_its_objects_are(context):
    assert set(context.get_params()) == {"OCL_CONTEXT", "OCL_QUEUE"}
