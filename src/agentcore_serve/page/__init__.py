"""The watch page: a list of conversations, and one of them as it happens, in a browser.

Plain files, served as they are: Preact with htm from `vendor` (see the licences there), no build, nothing from elsewhere.
"""
