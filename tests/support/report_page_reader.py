"""A strict reader of the pages that `marketsched report` makes."""

from html.parser import HTMLParser

VOID = {"meta", "link", "img", "br"}


class Page(HTMLParser):
    """Reads a page strictly: tags are balanced, and everything is kept that could ask for something."""

    def __init__(self, text):
        super().__init__(convert_charrefs=True)
        self.open, self.tags, self.attributes, self.words, self.texts = [], [], [], [], {}
        self.feed(text)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self.attributes += [(tag, name, value) for name, value in attrs]
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.words.append(data)
        if self.open:
            self.texts.setdefault(self.open[-1], []).append(data)

    @property
    def text(self):
        return "".join(self.words)

    @property
    def images(self):
        return [value for tag, name, value in self.attributes if (tag, name) == ("img", "src")]
