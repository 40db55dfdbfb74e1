#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Installs what tests need from the registry of npm before they ask for it, so that they don't wait: CORDON=BUILD/cordon tests/packages.py"""
import concurrent.futures

from support import TESTS, install_packages

with concurrent.futures.ThreadPoolExecutor(2) as pool:
    for done in [pool.submit(install_packages, lock.parent) for lock in sorted(TESTS.rglob("package-lock.json"))]:
        done.result()
