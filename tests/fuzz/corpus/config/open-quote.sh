#!/bin/sh
#DIVVY --name "open
