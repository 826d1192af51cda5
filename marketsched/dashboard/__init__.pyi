from .components import market_components as market_components
