"""Who acts: the Mesa market, job owners and their strategies. The only room that imports Mesa."""
