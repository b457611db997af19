#!/bin/sh
#DIVVY --slice 2g.20gb --time 2h
#DIVVY --name "my run"
python3 train.py
