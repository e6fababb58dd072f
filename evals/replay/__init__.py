"""Runs the drift detectors over a recorded series: when would each have alarmed?"""
