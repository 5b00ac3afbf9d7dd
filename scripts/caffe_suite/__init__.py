"""Caffe nets for tests: written and read without Caffe, and run by mo with OpenVINO, by OpenCV and by NumPy."""
