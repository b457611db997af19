#!/usr/bin/python3
"""fake_manager.py FOLDER - as much of systemd's manager as divvyd asks for, on the system bus.

FOLDER/mode says what becomes of StartUnit: "start" runs the program that
FOLDER/supervisor names on the job's folder, "refuse NAME" answers with that
D-Bus error, "fail" queues it and then says that it failed, "silent" says
nothing. FOLDER/asked gets a line for each call; FOLDER/ready is there once it
listens.
"""
import pathlib
import subprocess
import sys

import dbus
import dbus.lowlevel
import dbus.mainloop.glib
import dbus.service
from gi.repository import GLib

MANAGER = "org.freedesktop.systemd1.Manager"


class Manager(dbus.service.Object):
    def __init__(self, bus, folder):
        super().__init__(bus, "/org/freedesktop/systemd1")
        self.folder = folder
        self.number = 0

    def note(self, words):
        with open(self.folder / "asked", "a") as asked:
            asked.write(words + "\n")

    @dbus.service.method(MANAGER)
    def Subscribe(self):
        self.note("Subscribe")

    @dbus.service.method(MANAGER, in_signature="ss", out_signature="o",
                         async_callbacks=("answer", "refuse"))
    def StartUnit(self, unit, mode, answer, refuse):
        self.note(f"StartUnit {unit} {mode}")
        what, _, more = (self.folder / "mode").read_text().partition(" ")
        if what == "refuse":
            refuse(dbus.DBusException("it says no", name=more))
        elif what != "silent":
            self.number += 1
            path = f"/org/freedesktop/systemd1/job/{self.number}"
            answer(dbus.ObjectPath(path))
            if what == "start":
                job = unit[len("divvy-job@"):-len(".service")]
                subprocess.Popen([(self.folder / "supervisor").read_text(), f"/var/lib/divvy/jobs/{job}"],
                                 start_new_session=True)
            GLib.idle_add(self.JobRemoved, self.number, path, unit, "done" if what == "start" else "failed")

    @dbus.service.signal(MANAGER, signature="uoss")
    def JobRemoved(self, number, job, unit, result):
        pass


def main(folder):
    dbus.mainloop.glib.DBusGMainLoop(set_as_default=True)
    bus = dbus.SystemBus()
    name = dbus.service.BusName("org.freedesktop.systemd1", bus)
    manager = Manager(bus, folder)
    (folder / "ready").touch()
    GLib.MainLoop().run()
    return name, manager


main(pathlib.Path(sys.argv[1]))
